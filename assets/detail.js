// @ts-check
// One picture, large: its probabilities, its energy and gradient, its flips, and its past to scrub through.
import { bitmap, colours, make, percent, seriesColour, setText, sharpen } from './base.js';
import { chooseEnd } from './ends.js';
import { cut, onScreen, paintGrid } from './grid.js';
import { axes, energies, line, paintTurns, past, segment, spanOf, traces } from './plots.js';
import { compact, lifts, niceTicks, robustRange, some } from './scales.js';
import { stateOf } from './state.js';
import { find, labelOf, model, page, store } from './store.js';
import { actions } from './tiles.js';
import { bit } from './wire.js';

/** @typedef {import('./plots.js').Trace} Trace */
/** @typedef {import('./plots.js').Plot} Plot */

/** `at`: index into the past, null is now. */
export const detail = { open: false, lane: 0, chain: 0, at: /** @type {number | null} */ (null) };
const box = find('.gj-detail');
/** @type {{ row: any, bar: any, value: any }[]} */
let bars = [];
let built = '';
let due = 0;

/** @type {(lane: number, chain: number) => void} */
export function openDetail(lane, chain) {
  Object.assign(detail, { open: true, lane, chain, at: null });
  build();
  find('.gj-grid').hidden = true;
  find('.gj-stage').classList.add('gj-tall');
  box.hidden = false;
  paintActions();
  paintDetail(true);
  box.querySelector('[data-go=close]').focus();
}

export function closeDetail() {
  if (!detail.open) return;
  detail.open = false;
  box.hidden = true;
  find('.gj-grid').hidden = false;
  find('.gj-stage').classList.remove('gj-tall');
  paintGrid();
  find(`.gj-tile[data-lane="${detail.lane}"][data-chain="${detail.chain}"] .gj-open`)?.focus();
}

/** @param {number} chain */
function turnTo(chain) {
  const n = onScreen()?.frame.lanes[detail.lane].n ?? 1;
  Object.assign(detail, { chain: (chain + n) % n, at: null });
  paintActions();
  paintDetail(true);
}

function paintActions() {
  const ends = model().levels
    ? ['a', 'b'].map((end) =>
        make(
          'button',
          { type: 'button', 'data-tile': `end-${end}`, onclick: () => chooseEnd(end, detail.lane, detail.chain) },
          `Use as ${end.toUpperCase()}`,
        ),
      )
    : [];
  box.querySelector('.gj-detail-actions').replaceChildren(...actions(detail.lane, detail.chain, true), ...ends);
}
page.detailChanged = () => {
  if (detail.open) paintActions();
};

/** @type {(name: string, title: string) => HTMLElement} */
const plotFigure = (name, title) =>
  make(
    'figure',
    { class: `gj-of-${name}` },
    make('figcaption', {}, `${title} `, make('small')),
    make('canvas', { 'data-detail': name, role: 'img', 'aria-label': `${title} of this chain` }),
  );

function build() {
  if (built === model().name) return;
  built = model().name;
  /** @type {(name: string, text: string, label: string) => HTMLElement} */
  const go = (name, text, label) => make('button', { type: 'button', 'data-go': name, 'aria-label': label }, text);
  bars = model().names.map((name) => {
    const parts = [make('span', {}, labelOf(name)), make('i', {}, make('b')), make('em', {}, '0 %')];
    const row = make('li', { 'data-name': name }, ...parts);
    return { row, bar: row.querySelector('b'), value: row.querySelector('em') };
  });
  const slider = make('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': 'Step to look at' });
  box.replaceChildren(
    make(
      'div',
      { class: 'gj-detail-head' },
      go('close', '← All', 'Back to all pictures'),
      make('h2', {}),
      go('before', '‹', 'Previous picture'),
      go('after', '›', 'Next picture'),
    ),
    make('div', { class: 'gj-row gj-detail-actions', role: 'group', 'aria-label': 'This picture' }),
    make(
      'div',
      { class: 'gj-detail-body' },
      make(
        'div',
        {},
        make('canvas', { class: 'gj-large', role: 'img', 'aria-label': 'The picture' }),
        make('label', { class: 'gj-scrub' }, slider, make('output', {}, 'now')),
      ),
      make('ul', { class: 'gj-bars', 'aria-label': 'Probability of each attribute' }, ...bars.map((one) => one.row)),
    ),
    make(
      'div',
      { class: 'gj-detail-plots' },
      plotFigure('energy', 'Energy'),
      plotFigure('grad', 'Gradient norm'),
      plotFigure('flips', 'Labels that flipped'),
    ),
  );
  slider.addEventListener('input', () => {
    detail.at = Number(slider.value) >= past.frames.length - 1 ? null : Number(slider.value);
    paintDetail(true);
  });
}

export function listenToDetail() {
  box.addEventListener('click', (/** @type {Event} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[data-go]'));
    const go = button?.dataset.go;
    if (go === 'close') closeDetail();
    if (go === 'before') turnTo(detail.chain - 1);
    if (go === 'after') turnTo(detail.chain + 1);
  });
  box.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') closeDetail();
  });
}

/** @param {boolean} [force] */
export async function paintDetail(force = false) {
  const shown = onScreen();
  if (!detail.open || !shown) return;
  const lane = shown.frame.lanes[detail.lane];
  if (!lane || detail.chain >= lane.n) {
    closeDetail();
    return;
  }
  const frame = detail.at === null ? null : past.frames[detail.at];
  if (frame) {
    const picture = await bitmap(frame.src[detail.lane]);
    paintLook(frame.step, picture, frame.sure[detail.lane], force);
    picture.close();
  } else paintLook(shown.frame.step, shown.bitmaps[detail.lane], lane.sure ?? null, force);
}

/** @type {(step: number, picture: ImageBitmap, sure: Uint8Array | null, force: boolean) => void} */
function paintLook(step, picture, sure, force) {
  const { frame } = /** @type {NonNullable<ReturnType<typeof onScreen>>} */ (onScreen());
  const lane = frame.lanes[detail.lane];
  const { chain } = detail;
  const name = `Picture ${chain + 1} of ${lane.n}${frame.lanes.length > 1 ? `, ${lane.title}` : ''}`;
  setText(box.querySelector('h2'), name);
  const large = box.querySelector('.gj-large');
  const side = large.clientWidth;
  if (!side) return;
  const context = sharpen(large, side, side);
  context.clearRect(0, 0, side, side);
  context.drawImage(cut(picture, lane, chain), 0, 0, side, side);
  large.setAttribute('aria-label', `${name} at step ${step}`);
  large.dataset.step = step;
  paintBars(sure, chain);
  const slider = box.querySelector('.gj-scrub input');
  slider.max = Math.max(0, past.frames.length - 1);
  if (detail.at === null) slider.value = slider.max;
  setText(box.querySelector('output'), (detail.at === null ? 'now, step ' : 'step ') + step);
  if (!force && performance.now() < due) return;
  due = performance.now() + 220;
  paintTraces(step);
}

/** @type {(sure: Uint8Array | null, chain: number) => void} */
function paintBars(sure, chain) {
  const K = bars.length;
  const labels = traces.lanes[detail.lane]?.labels;
  bars.forEach(({ row, bar, value }, k) => {
    const p = sure ? sure[chain * K + k] / 255 : 0;
    bar.style.transform = `scaleX(${p.toFixed(3)})`;
    setText(value, percent(p));
    row.dataset.state = stateOf(store.settings, row.dataset.name);
    row.dataset.label = labels ? bit(labels, chain, k, K) : '';
  });
}

/** @param {number} step */
function paintTraces(step) {
  const trace = traces.lanes[detail.lane];
  if (!trace?.points.length) return;
  const { chain } = detail;
  const points = energies(some(trace.points));
  const span = spanOf(points);
  for (const kind of /** @type {const} */ (['energy', 'grad'])) {
    const range = robustRange(points.map((point) => point[kind][chain]).filter((v) => kind === 'energy' || v > 0));
    const node = box.querySelector(`[data-detail=${kind}]`);
    const plot = axes(node, { x: span, y: range, format: compact, ticks: niceTicks(...range, 3) });
    if (!plot) continue;
    paintTurns(plot);
    /** @type {[number, number][]} */
    const line_ = points.map((p) => [p.step, kind === 'grad' && !p.grad[chain] ? Number.NaN : p[kind][chain]]);
    line(plot, line_, seriesColour(detail.lane), 1.6, 1, lifts(points));
    plot.context.strokeStyle = colours.ink;
    segment(plot.context, plot.toX(step), plot.box.top, plot.toX(step), plot.box.bottom);
  }
  paintFlips(trace, span, step);
}

/**
 * One row for each label that ever flipped: filled marks where it came on, hollow ones where it went off.
 * @type {(trace: Trace, span: [number, number], step: number) => void}
 */
function paintFlips(trace, span, step) {
  const { names } = model();
  const flips = trace.flips.filter((flip) => flip.chain === detail.chain);
  const rows = [...new Set(flips.map((flip) => flip.k))].sort((a, b) => a - b);
  const last = flips.at(-1);
  const when = last ? `${labelOf(names[last.k])} ${last.on ? 'on' : 'off'} at step ${last.step}` : '';
  const words = last
    ? `${flips.length} so far; the last: ${when}. Filled: switched on; hollow: switched off`
    : 'none so far';
  setText(box.querySelector('.gj-of-flips small'), words);
  const node = box.querySelector('[data-detail=flips]');
  const height = Math.max(40, 20 + 13 * rows.length);
  node.style.height = `${height}px`;
  const width = node.clientWidth;
  if (!width) return;
  const context = sharpen(node, width, height);
  context.clearRect(0, 0, width, height);
  Object.assign(context, { font: '11px system-ui, sans-serif', textBaseline: 'middle', textAlign: 'right' });
  const widest = Math.max(0, ...rows.map((k) => context.measureText(labelOf(names[k])).width));
  const left = 10 + Math.min(width / 2, widest);
  /** @param {number} value */
  const toX = (value) => left + ((value - span[0]) / Math.max(1, span[1] - span[0])) * (width - left - 8);
  rows.forEach((k, r) => {
    context.fillStyle = colours.muted;
    context.fillText(labelOf(names[k]), left - 8, 10 + 13 * r, left - 10);
    context.strokeStyle = colours.line;
    segment(context, left, 10 + 13 * r, width - 8, 10 + 13 * r);
  });
  context.lineWidth = 1.5;
  for (const { k, step: at, on } of flips) {
    context.fillStyle = context.strokeStyle = on ? colours.accent : colours.bad;
    context.beginPath();
    context.arc(toX(at), 10 + 13 * rows.indexOf(k), 2.6, 0, 7);
    if (on) context.fill();
    else context.stroke();
  }
  context.strokeStyle = colours.ink;
  context.lineWidth = 1;
  segment(context, toX(step), 2, toX(step), height - 8);
}
