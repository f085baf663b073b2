// The third screen: tables, the heat map, and which plots the server is asked for.
const page = (window.gibbsJem ??= {});
const more = () => document.querySelector('#gj-more .gj'); // mounted after this script has run
const compare = { order: Date.now(), reply: null, attribute: 'all', family: null, theme: '' };
const choose = (name) => find('[data-compare=' + name + ']');
const themeNow = () => (document.body.classList.contains('dark') ? 'dark' : 'light');

function openCompare() {
  compare.order += 1;
  compare.theme = themeNow();
  trigger('open', { order: compare.order, family: compare.family, model: new URLSearchParams(location.search).get('model'), attribute: compare.attribute, theme: compare.theme });
}

page.onCompare = (reply) => {
  if (reply.kind === 'explain') { paintSix(reply); return; }
  if (reply.kind === 'refused') { say(reply.message, 0); return; }
  if (reply.order !== compare.order) return;
  Object.assign(compare, { reply, family: reply.family, attribute: reply.attribute });
  fill(choose('family'), reply.families.map((one) => [one.key, one.title]), reply.family);
  const names = [...reply.attributes].sort((a, b) => a.label.localeCompare(b.label)).map((one) => [one.name, one.label]);
  fill(choose('attribute'), [['all', 'All, averaged'], ...names], reply.attribute);
  paintPrediction();
  setText(find('.gjc-missing'), reply.missing);
  find('.gjc-missing').hidden = !reply.missing;
  find('.gjc-none').hidden = reply.prediction.ours.length > 0;
  choose('attribute').parentElement.hidden = !reply.attributes.length;
  paintSynthesis(reply.synthesis);
  paintPairs(reply.pairs);
  if (!more().dataset.drawn) explainNow(0);
  compare.drawn = performance.now();
};

function fill(node, options, value) {
  node.replaceChildren(...options.map(([key, text]) => make('option', { value: key }, text)));
  node.value = value;
}

const figure = (cell, best) => make('td', { class: best ? 'gjc-best' : '', 'data-from': cell?.from }, make('b', {}, cell ? cell.text : '–'), cell?.interval ? make('small', {}, cell.interval) : null);

function paintPrediction() {
  const { prediction } = compare.reply, average = choose('average').value;
  const heads = make('tr', {}, make('th', { scope: 'col' }, 'Measure'),
    ...prediction.ours.map((one) => make('th', { scope: 'col' }, one.title, make('small', {}, one.model),
      one.iterations ? make('small', {}, one.iterations.toLocaleString('en') + ' iterations') : null)),
    ...prediction.paper.map((one) => make('th', { scope: 'col', class: 'gjc-paper' }, one.title, make('small', {}, 'the paper'))));
  const rows = prediction.rows.filter((row) => row.average === average).map((row) => make('tr', {}, make('th', { scope: 'row' }, row.measure),
    ...prediction.ours.map(({ objective }) => figure(row.ours[objective], row.best === objective)),
    ...prediction.paper.map(({ objective }) => { const cell = figure(row.paper[objective]); cell.classList.add('gjc-paper'); return cell; })));
  find('[data-table=prediction]').replaceChildren(make('thead', {}, heads), make('tbody', {}, ...rows));
  setText(find('.gjc-note'), [prediction.paper_title && prediction.paper_title + '. ' + prediction.source + '.', prediction.note].filter(Boolean).join(' '));
}

function paintSynthesis(rows) {
  more().querySelector('.gjc-synthesis').hidden = !rows.length;
  const heads = make('tr', {}, ...['Measure', 'Value', 'Chains'].map((text) => make('th', { scope: 'col' }, text)));
  const body = rows.map((row) => make('tr', {}, make('th', { scope: 'row' }, row.measure[0].toUpperCase() + row.measure.slice(1)), figure(row.cell), make('td', {}, row.chains == null ? '' : row.chains.toLocaleString('en'))));
  more().querySelector('[data-table=synthesis]').replaceChildren(make('thead', {}, heads), make('tbody', {}, ...body));
}

// One cell a pair; a click opens the first screen with it.
function paintPairs(pairs) {
  more().querySelector('.gjc-pairs').hidden = !pairs;
  if (!pairs) return;
  const { names } = pairs, label = (name) => compare.reply.attributes.find((one) => one.name === name)?.label || name;
  setText(more().querySelector('.gjc-pairs-note'), 'Judged right, ' + pairs.chains + (pairs.chains === 1 ? ' chain' : ' chains') + ' a pair: a map, no measurement. ★ training never showed the two together. A click opens the pair in the studio.');
  const known = new Map(pairs.cells.map((cell) => [cell.pair.join('+'), cell]));
  const grid = more().querySelector('.gjc-grid');
  grid.style.gridTemplateColumns = 'minmax(9em, auto) repeat(' + names.length + ', minmax(19px, 30px))';
  const head = [make('i'), ...names.map((name) => make('span', { class: 'gjc-up' }, make('em', {}, label(name))))];
  const rows = names.flatMap((a) => [make('span', {}, label(a)), ...names.map((b) => {
    const cell = known.get(a + '+' + b) || known.get(b + '+' + a);
    if (!cell || a === b) return make('i');
    const text = label(a) + ' and ' + label(b).toLowerCase() + ': ' + percent(cell.value) + ' judged right, ' + cell.training.toLocaleString('en') + ' training images';
    return make('button', { type: 'button', style: '--v:' + cell.value, title: text, 'aria-label': text, 'data-pair': a + ',' + b, 'data-value': cell.value, onclick: () => visit([a, b], pairs.model) }, cell.training ? '' : '★');
  })]);
  grid.replaceChildren(...head, ...rows);
}

function visit(wanted, model) {
  page.go('studio', false);
  page.open({ model, with: wanted, without: [], start: 'conditional', compare: 'none' });
  page.resume();
}

for (const name of ['family', 'attribute']) choose(name).addEventListener('change', (event) => {
  compare[name] = event.target.value;
  if (name === 'family') compare.attribute = 'all';
  openCompare();
});
choose('average').addEventListener('change', paintPrediction);
find('.gj-message button').addEventListener('click', () => say(''));
window.addEventListener('gj-screen', (event) => { if (event.detail === 'compare' && (!compare.reply || compare.theme !== themeNow())) openCompare(); });
new MutationObserver(() => { if (compare.reply && document.body.dataset.screen === 'compare' && compare.theme !== themeNow()) openCompare(); }).observe(document.body, { attributes: true, attributeFilter: ['class'] });
if (document.body.dataset.screen === 'compare') openCompare();
page.compareScreen = compare;
