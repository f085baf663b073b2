// "How it works": six pictures from the server, each of images, bars, lines or points.
let explainSeed = 0;
const explainNow = (seed) => { more().dataset.drawn = 'asked'; trigger('explain', { model: compare.reply?.model, seed }); };
document.addEventListener('click', (event) => { if (event.target.closest('.gjc-draw')) { explainSeed += 1; explainNow(explainSeed); } });

const SVG = 'http://www.w3.org/2000/svg';
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function paintSix(reply) {
  more().dataset.drawn = 'yes';
  more().querySelector('.gjc-six').replaceChildren(...reply.pictures.map((one) => make('article', {},
    make('h3', {}, one.title), make('p', {}, one.text),
    one.images ? make('div', { class: 'gjc-strip' }, ...one.images.map((image) => make('figure', {}, make('img', { src: image.src, alt: image.text }), make('figcaption', {}, image.text)))) : null,
    one.bars ? make('div', { class: 'gjc-bars' }, ...one.bars.map((bar) => make('div', {}, make('span', {}, bar.label), make('i', {}, make('b', { style: 'width:' + Math.max(1, 100 * bar.value) + '%' })), make('em', {}, bar.text)))) : null,
    one.lines ? linesOf(one) : null,
    one.points ? pointsOf(one.points) : null,
    one.note ? make('p', { class: 'gj-hint' }, one.note) : null)));
}

function linesOf({ lines, range }) {
  const all = lines.flatMap((one) => one.values), low = range ? range[0] : Math.min(...all, 0), high = range ? range[1] : Math.max(...all, 1);
  const path = (values) => values.map((value, i) => (i ? 'L' : 'M') + (300 * i / Math.max(1, values.length - 1)).toFixed(1) + ' ' + (84 - 80 * (value - low) / (high - low || 1)).toFixed(1)).join('');
  const chart = svg('svg', { viewBox: '0 0 300 88', role: 'img', 'aria-label': lines.map((one) => one.label).join(', ') },
    svg('path', { d: 'M0 84H300', class: 'gjc-axis' }),
    ...lines.map((one, i) => svg('path', { d: path(one.values), style: 'stroke:var(--gj-series-' + (i + 1) + ')' })));
  return make('div', { class: 'gjc-lines' }, chart, make('p', { class: 'gj-hint' }, ...lines.map((one, i) => make('span', { style: 'color:var(--gj-series-' + (i + 1) + ')' }, one.label + ' '))));
}

function pointsOf(points) {
  const chart = svg('svg', { viewBox: '-4 -4 148 148', role: 'img', 'aria-label': 'What is said against what was so', class: 'gjc-square' },
    svg('path', { d: 'M0 0V140H140', class: 'gjc-axis' }), svg('path', { d: 'M0 140L140 0', class: 'gjc-diagonal' }),
    ...points.map(([said, was]) => svg('circle', { cx: 140 * said, cy: 140 - 140 * was, r: 3.2 })));
  return make('div', { class: 'gjc-lines' }, chart, make('p', { class: 'gj-hint' }, 'across: said, up: so'));
}
