// One chain, large: its image, its probabilities, its energy and gradient, its flips, and its past to scrub through.
const detail = { open: false, lane: 0, chain: 0, at: null, built: '', bars: [], thumbs: '' }; // at: index into the past, null is live
const detailBox = find('.gj-detail');

function openDetail(lane, chain) {
  Object.assign(detail, { open: true, lane, chain, at: null, thumbs: '' });
  buildDetail();
  find('.gj-grid').classList.add('gj-hidden');
  detailBox.hidden = false;
  paintDetail(true);
  detailBox.querySelector('[data-go=close]').focus();
}

function closeDetail() {
  detail.open = false;
  detailBox.hidden = true;
  find('.gj-grid').classList.remove('gj-hidden');
  paintGrid();
  find('.gj-tile[data-lane="' + detail.lane + '"][data-chain="' + detail.chain + '"]')?.focus();
}

function turnTo(chain) {
  const n = shown.frame.lanes[detail.lane].n;
  Object.assign(detail, { chain: (chain + n) % n, at: null, thumbs: '' });
  paintDetail(true);
}

function buildDetail() {
  if (detail.built === model().name) return;
  detail.built = model().name;
  const go = (name, text, label) => make('button', { type: 'button', 'data-go': name, 'aria-label': label }, text);
  detail.bars = model().names.map((name) => {
    const row = make('li', { 'data-name': name }, make('span', {}, labelOf(name)), make('i', {}, make('b')), make('em', {}, '0 %'));
    return { row, bar: row.querySelector('b'), value: row.querySelector('em') };
  });
  detailBox.replaceChildren(
    make('div', { class: 'gj-detail-head' }, go('close', '← All chains', 'Back to all chains'), make('h2', {}), go('before', '‹', 'Chain before'), go('after', '›', 'Chain after')),
    make('div', { class: 'gj-detail-body' },
      make('div', { class: 'gj-detail-left' },
        make('canvas', { class: 'gj-large', role: 'img' }),
        make('canvas', { class: 'gj-strip', 'aria-hidden': 'true' }),
        make('label', { class: 'gj-scrub' }, make('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': 'Step of this chain to look at' }), make('output', {}, 'live'))),
      make('ul', { class: 'gj-bars', 'aria-label': 'Probability of each attribute' }, ...detail.bars.map((bar) => bar.row))),
    make('div', { class: 'gj-detail-plots' },
      make('figure', {}, make('figcaption', {}, 'Energy'), make('canvas', { 'data-detail': 'energy', role: 'img', 'aria-label': 'Energy of this chain' })),
      make('figure', {}, make('figcaption', {}, 'Gradient norm'), make('canvas', { 'data-detail': 'grad', role: 'img', 'aria-label': 'Gradient norm of this chain' })),
      make('figure', { class: 'gj-flips' }, make('figcaption', {}, 'Labels that flipped ', make('small')), make('canvas', { 'data-detail': 'flips', role: 'img', 'aria-label': 'Which labels flipped when' }))));
  const slider = detailBox.querySelector('input');
  slider.addEventListener('input', () => {
    const last = history_.frames.length - 1;
    detail.at = Number(slider.value) >= last ? null : Number(slider.value);
    paintDetail(true);
  });
}

function listenToDetail() {
  detailBox.addEventListener('click', (event) => {
    const go = event.target.closest('[data-go]')?.dataset.go;
    if (go === 'close') closeDetail();
    if (go === 'before') turnTo(detail.chain - 1);
    if (go === 'after') turnTo(detail.chain + 1);
  });
  detailBox.addEventListener('keydown', (event) => { if (event.key === 'Escape') closeDetail(); });
}

// What is looked at: the frame on screen, or one of the past.
async function lookedAt() {
  if (detail.at === null || !history_.frames[detail.at]) {
    return { step: shown.frame.step, picture: shown.bitmaps[detail.lane], lane: shown.frame.lanes[detail.lane], sure: shown.frame.lanes[detail.lane].sure, past: false };
  }
  const frame = history_.frames[detail.at];
  return { step: frame.step, picture: await bitmap(frame.src[detail.lane]), lane: shown.frame.lanes[detail.lane], sure: frame.sure[detail.lane], past: true };
}

let detailDue = 0;
async function paintDetail(force = false) {
  if (!detail.open || !shown) return;
  if (!shown.frame.lanes[detail.lane] || detail.chain >= shown.frame.lanes[detail.lane].n) { closeDetail(); return; }
  const { lane, chain } = detail;
  const look = await lookedAt();
  const { n, columns, size, title, diverged } = look.lane;
  const name = 'Chain ' + (chain + 1) + ' of ' + n + (shown.frame.lanes.length > 1 ? ', ' + title : '') + (diverged.includes(chain) ? ' (diverged)' : '');
  setText(detailBox.querySelector('h2'), name);
  const large = detailBox.querySelector('.gj-large');
  const side = large.clientWidth;
  if (!side) return;
  const context = sharpen(large, side, side);
  context.clearRect(0, 0, side, side);
  try {
    context.drawImage(look.picture, (chain % columns) * size, Math.floor(chain / columns) * size, size, size, 0, 0, side, side);
  } catch { return; } // the frame was replaced in between: the next one paints
  if (look.past) look.picture.close();
  large.setAttribute('aria-label', name + ' at step ' + look.step);
  large.dataset.step = look.step;
  paintBars(look.sure, chain);
  const slider = detailBox.querySelector('input'), last = Math.max(0, history_.frames.length - 1);
  slider.max = last;
  if (detail.at === null) slider.value = last;
  setText(detailBox.querySelector('output'), (detail.at === null ? 'now, step ' : 'step ') + look.step);
  const now = performance.now();
  if (force || now > detailDue) {
    detailDue = now + 220;
    paintTraces(lane, chain, look.step);
    paintStripOfPast(lane, chain, columns, size);
  }
}

function paintBars(sure, chain) {
  const K = detail.bars.length;
  const labels = traces.lanes[detail.lane]?.labels;
  detail.bars.forEach(({ row, bar, value }, k) => {
    const p = sure ? sure[chain * K + k] / 255 : 0;
    bar.style.transform = 'scaleX(' + p.toFixed(3) + ')';
    setText(value, percent(p));
    row.dataset.state = stateOf(row.dataset.name);
    row.dataset.label = labels ? bit(labels, chain, k, K) : '';
  });
}

function paintTraces(lane, chain, step) {
  const trace = traces.lanes[lane];
  if (!trace?.points.length) return;
  const points = some(trace.points);
  const span = [points[0].step, Math.max(points.at(-1).step, points[0].step + 1)];
  for (const kind of ['energy', 'grad']) {
    const values = points.map((point) => point[kind][chain]).filter((value) => kind === 'energy' || value > 0);
    const range = robustRange([...values]);
    const plot = axes(detailBox.querySelector('[data-detail=' + kind + ']'), { x: span, y: range, format: compact, ticks: niceTicks(...range, 3) });
    if (!plot) continue;
    paintTurns(plot);
    line(plot, points.map((point) => [point.step, kind === 'grad' && !point.grad[chain] ? NaN : point[kind][chain]]), seriesColour(lane), 1.6);
    paintNow(plot, step);
  }
  paintFlips(trace, chain, span, step);
}

function paintNow(plot, step) {
  const x = plot.toX(step);
  plot.context.strokeStyle = colours.ink; plot.context.lineWidth = 1;
  plot.context.beginPath(); plot.context.moveTo(x, plot.box.top); plot.context.lineTo(x, plot.box.bottom); plot.context.stroke();
}

// One row for each label that ever flipped: filled marks where it came on, hollow ones where it went off.
function paintFlips(trace, chain, span, step) {
  const names = model().names;
  const flips = trace.flips.filter((flip) => flip.chain === chain);
  const rows = [...new Set(flips.map((flip) => flip.k))].sort((a, b) => a - b);
  const recent = flips.at(-1);
  setText(detailBox.querySelector('.gj-flips small'), flips.length
    ? flips.length + ' flips; the last: ' + labelOf(names[recent.k]) + (recent.on ? ' on' : ' off') + ' at step ' + recent.step
    : 'none so far');
  const node = detailBox.querySelector('[data-detail=flips]');
  node.style.height = Math.max(40, 20 + 13 * rows.length) + 'px';
  const width = node.clientWidth, height = Math.max(40, 20 + 13 * rows.length);
  if (!width) return;
  const context = sharpen(node, width, height);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, sans-serif'; context.textBaseline = 'middle';
  const left = 112, toX = (value) => left + ((value - span[0]) / Math.max(1, span[1] - span[0])) * (width - left - 8);
  rows.forEach((k, r) => {
    const y = 10 + 13 * r;
    context.fillStyle = colours.muted; context.textAlign = 'right';
    context.fillText(labelOf(names[k]).slice(0, 18), left - 8, y);
    context.strokeStyle = colours.line; context.beginPath(); context.moveTo(left, y); context.lineTo(width - 8, y); context.stroke();
  });
  context.lineWidth = 1.5;
  for (const { k, step: when, on } of flips) {
    context.fillStyle = context.strokeStyle = on ? colours.accent : colours.bad;
    context.beginPath(); context.arc(toX(when), 10 + 13 * rows.indexOf(k), 2.6, 0, 7);
    if (on) context.fill(); else context.stroke();
  }
  context.strokeStyle = colours.ink; context.lineWidth = 1;
  context.beginPath(); context.moveTo(toX(step), 2); context.lineTo(toX(step), height - 8); context.stroke();
}

// A dozen pictures of the past in a row, evenly spread; each is decoded once, and the row is renewed once a second.
let stripDue = 0;
const thumbs = new Map();
async function paintStripOfPast(lane, chain, columns, size) {
  const node = detailBox.querySelector('.gj-strip');
  const width = node.clientWidth, height = node.clientHeight, frames = history_.frames;
  const who = [lane, chain, store.fresh, width].join();
  const now = performance.now();
  if (!width || frames.length < 2 || (detail.thumbs === who && now < stripDue)) return;
  if (detail.thumbs !== who) { thumbs.forEach((picture) => picture.close()); thumbs.clear(); }
  detail.thumbs = who;
  stripDue = now + 1000;
  const count = Math.max(4, Math.floor(width / (height + 2)));
  const picks = Array.from({ length: count }, (_, i) => frames[Math.round((i * (frames.length - 1)) / (count - 1))]);
  const crop = [(chain % columns) * size, Math.floor(chain / columns) * size, size, size];
  for (const pick of picks) {
    if (!thumbs.has(pick.step)) thumbs.set(pick.step, await bitmap(pick.src[lane], ...crop));
    if (detail.thumbs !== who) return;
  }
  const context = sharpen(node, width, height), step = width / count;
  context.clearRect(0, 0, width, height);
  picks.forEach((pick, i) => context.drawImage(thumbs.get(pick.step), i * step, 0, step - 2, Math.min(height, step - 2)));
}
