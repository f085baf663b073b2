// @ts-check
// Traces of the run, and the two live plots, drawn on canvases a few times per second: the grid needs the time more.
import { bytes, colours, make, seriesColour, setText, sharpen } from './base.js';
import { onScreen } from './grid.js';
import { compact, finiteMean, lifts, niceTicks, robustRange, some, thin } from './scales.js';
import { asked, attribute, find, model } from './store.js';
import { bit, meansOf, unpack } from './wire.js';

/** @typedef {import('./wire.js').Frame} Frame */
/** @typedef {import('./wire.js').Point} Point */
/** @typedef {{ step: number, chain: number, k: number, on: number }} Flip */
/** @typedef {{ points: Point[], flips: Flip[], labels: Uint8Array | null }} Trace */
/** @typedef {{ context: CanvasRenderingContext2D, box: { left: number, top: number, right: number, bottom: number }, toX: (x: number) => number, toY: (y: number) => number }} Plot */

const EVERY = 220; // milliseconds between two drawings
const MOST_PAST = 160; // frames of the past that can be looked at
export const traces = {
  /** @type {Trace[]} */ lanes: [],
  /** @type {{ step: number, level: number, means: Float32Array[] }[]} */ means: [],
  /** @type {{ step: number, asks: string }[]} */ turns: [],
};
/** Pictures of the run for the scrubber. */
export const past = {
  /** @type {{ step: number, src: string[], sure: (Uint8Array | null)[] }[]} */ frames: [],
  stride: 1,
  epoch: -1,
};
let due = 0;

function forgetTraces() {
  Object.assign(traces, { lanes: [], means: [], turns: [] });
  Object.assign(past, { frames: [], stride: 1 });
}

/** Unpack what the frame brought and add it to the traces. @param {Frame} frame */
export function remember(frame) {
  const K = model().names.length;
  for (const lane of frame.lanes) {
    lane.attributes = K;
    lane.sure = lane.p ? bytes(lane.p) : null;
  }
  if (frame.status === 'best') return null; // chains that come and go have no trace
  if (frame.epoch !== past.epoch) {
    forgetTraces(); // other chains: a line from the old to the new would mean nothing
    past.epoch = frame.epoch;
  }
  frame.lanes.forEach((lane, l) => {
    const trace = (traces.lanes[l] ??= { points: [], flips: [], labels: null });
    for (const point of unpack(frame, lane, K)) {
      trace.points.push(point);
      noteFlips(trace, point, lane.n, K);
    }
    trace.points = thin(trace.points);
  });
  const means = frame.lanes.map((lane) => meansOf(lane, K));
  if (frame.lanes[0].sure) {
    traces.means.push({ step: frame.step, level: frame.level, means });
    traces.means = thin(traces.means);
  }
  const asks = JSON.stringify([frame.with, frame.without]);
  if (traces.turns.at(-1)?.asks !== asks) traces.turns.push({ step: frame.step, asks });
  keepPast(frame);
  return frame.lanes[0].sure ? means[0] : null;
}

/** @param {Frame} frame */
function keepPast(frame) {
  const last = past.frames.at(-1);
  if (last && frame.step < last.step + past.stride && !frame.digest) return;
  if (last && last.step === frame.step) past.frames.pop(); // the exact picture in the place of the light one
  past.frames.push({
    step: frame.step,
    src: frame.lanes.map((lane) => lane.src),
    sure: frame.lanes.map((lane) => lane.sure ?? null),
  });
  if (past.frames.length > MOST_PAST) {
    past.frames = past.frames.filter((_, i) => i % 2 === 0);
    past.stride *= 2;
  }
}

/** @type {(trace: Trace, point: Point, n: number, K: number) => void} */
function noteFlips(trace, point, n, K) {
  const before = trace.labels;
  trace.labels = point.labels;
  if (!before || before.length !== point.labels.length) return;
  for (let chain = 0; chain < n; chain++)
    for (let k = 0; k < K; k++) {
      const on = bit(point.labels, chain, k, K);
      if (on !== bit(before, chain, k, K)) trace.flips.push({ step: point.step, chain, k, on });
    }
  if (trace.flips.length > 40000) trace.flips = trace.flips.slice(-20000);
}

/** Whether it is time to draw again. */
export const plotsDue = () => performance.now() >= due;
/** @param {boolean} [force] */
export function paintPlots(force = false) {
  if (!force && !plotsDue()) return;
  due = performance.now() + EVERY;
  if (!traces.lanes.length) return;
  plotEnergy();
  plotAsked();
  find('.gj-turns').hidden = traces.turns.length < 2;
}

/**
 * Axes, and functions from data to pixels.
 * @type {(node: HTMLCanvasElement, parts: { x: [number, number], y: [number, number], ticks: number[], format: (value: number) => string }) => Plot | null}
 */
export function axes(node, { x, y, format, ticks }) {
  const width = node.clientWidth;
  const height = node.clientHeight;
  if (!width || !height) return null;
  const context = sharpen(node, width, height);
  context.clearRect(0, 0, width, height);
  const box = { left: 38, top: 6, right: width - 8, bottom: height - 18 };
  const spanX = Math.max(1, x[1] - x[0]);
  const spanY = y[1] - y[0] || 1;
  /** @param {number} value */
  const toX = (value) => box.left + ((value - x[0]) / spanX) * (box.right - box.left);
  /** @param {number} value */
  const toY = (value) => box.bottom - ((value - y[0]) / spanY) * (box.bottom - box.top);
  context.font = '11px system-ui, sans-serif';
  context.lineWidth = 1;
  for (const tick of ticks) {
    context.strokeStyle = colours.line;
    segment(context, box.left, toY(tick), box.right, toY(tick));
    context.fillStyle = colours.muted;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(format(tick), box.left - 5, toY(tick));
  }
  context.textBaseline = 'alphabetic';
  context.textAlign = 'left';
  context.fillText(`step ${x[0]}`, box.left, height - 4);
  context.textAlign = 'right';
  context.fillText(String(x[1]), box.right, height - 4);
  return { context, box, toX, toY };
}

/** @type {(context: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number) => void} */
export function segment(context, x, y, toX, toY) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
}

/** Where the condition changed. @param {Plot} plot */
export function paintTurns(plot) {
  const { context, box } = plot;
  context.strokeStyle = colours.muted;
  context.setLineDash([2, 3]);
  for (const turn of traces.turns.slice(1)) {
    const x = plot.toX(turn.step);
    if (x >= box.left) segment(context, x, box.top, x, box.bottom);
  }
  context.setLineDash([]);
}

/** @type {(plot: Plot, points: [number, number][], colour: string, width: number, alpha?: number, breaks?: number[]) => void} */
export function line(plot, points, colour, width, alpha = 1, breaks = []) {
  const { context } = plot;
  Object.assign(context, { strokeStyle: colour, lineWidth: width, globalAlpha: alpha, lineJoin: 'round' });
  context.beginPath();
  let pen = false;
  points.forEach(([x, y], i) => {
    if (breaks.includes(i)) pen = false;
    if (!Number.isFinite(y)) {
      pen = false;
      return;
    }
    if (pen) context.lineTo(plot.toX(x), plot.toY(y));
    else context.moveTo(plot.toX(x), plot.toY(y));
    pen = true;
  });
  context.stroke();
  context.globalAlpha = 1;
}

/** @type {(points: { step: number }[]) => [number, number]} */
export const spanOf = (points) =>
  points.length ? [points[0].step, Math.max(points[points.length - 1].step, points[0].step + 1)] : [0, 1];

/**
 * Energies that may be compared. With noise levels only those at the same level may, so each is taken from the mean of
 * all chains at its step: what a chain's line then says stays true when it is lifted.
 * @param {Point[]} points
 */
export function energies(points) {
  if (!model().levels) return points;
  return points.map((point) => {
    const mean = finiteMean(point.energy);
    return { ...point, energy: point.energy.map((value) => value - mean) };
  });
}
const energyWords = () => (model().levels ? 'difference from the average; lower = more likely' : 'lower = more likely');

function plotEnergy() {
  const lanes = traces.lanes.map((lane) => energies(some(lane.points)));
  const few = lanes.flatMap((points) => points.filter((_, i) => i % 3 === 0).flatMap((point) => [...point.energy]));
  const range = robustRange(few);
  const node = find('[data-plot=energy]');
  const plot = axes(node, { x: spanOf(traces.lanes[0].points), y: range, format: compact, ticks: niceTicks(...range) });
  if (!plot || !lanes[0].length) return;
  paintTurns(plot);
  const { context, box } = plot;
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  lanes.forEach((points, l) => {
    const n = points[0]?.energy.length ?? 0;
    const breaks = lifts(points);
    for (let i = 0; i < n; i++)
      line(
        plot,
        points.map((p) => [p.step, p.energy[i]]),
        seriesColour(l),
        1,
        n > 30 ? 0.18 : n > 8 ? 0.35 : 0.7,
        breaks,
      );
    if (!model().levels)
      line(
        plot,
        points.map((p) => [p.step, finiteMean(p.energy)]),
        seriesColour(l),
        2,
        1,
        breaks,
      );
  });
  context.restore();
  const titles = onScreen()?.frame.lanes.map((lane) => lane.title) ?? [];
  legend('energy', titles.length > 1 ? titles.map((text, l) => ({ text, colour: seriesColour(l) })) : []);
  setText(node.parentElement.querySelector('small'), energyWords());
}

function seriesOf(/** @type {Float32Array} */ last) {
  const { names } = model();
  const chosen = asked().map(({ name, wanted }, j) => ({
    k: names.indexOf(name),
    wanted,
    colour: seriesColour(j),
    text: wanted ? attribute(name).yes : attribute(name).no,
  }));
  if (chosen.length) return chosen;
  const top = [...last.keys()].sort((a, b) => last[b] - last[a]).slice(0, 3); // what the pictures are by themselves
  return top.map((k, j) => ({ k, wanted: true, colour: seriesColour(j), text: attribute(names[k]).yes }));
}

function plotAsked() {
  const means = some(traces.means);
  const node = find('[data-plot=asked]');
  const plot = axes(node, { x: spanOf(means), y: [0, 1], format: (v) => `${100 * v} %`, ticks: [0, 0.5, 1] });
  if (!plot || !means.length) return;
  paintTurns(plot);
  const series = seriesOf(means[means.length - 1].means[0]);
  for (const { k, wanted, colour } of series)
    means[0].means.forEach((_, l) => {
      plot.context.setLineDash(l ? [5, 4] : []);
      line(
        plot,
        means.map((m) => [m.step, wanted ? m.means[l][k] : 1 - m.means[l][k]]),
        colour,
        2,
      );
    });
  plot.context.setLineDash([]);
  legend('asked', series);
  const second = onScreen()?.frame.lanes[1]?.title;
  setText(node.parentElement.querySelector('small'), `mean probability${second ? `; dashed: ${second}` : ''}`);
}

/** Below the plot, where it covers nothing. @type {(name: string, entries: { text: string, colour: string }[]) => void} */
function legend(name, entries) {
  const box = find(`[data-legend=${name}]`);
  const key = JSON.stringify(entries);
  if (box.dataset.drawn === key) return;
  box.dataset.drawn = key;
  box.replaceChildren(
    ...entries.map(({ text, colour }) => make('span', {}, make('i', { style: `background:${colour}` }), text)),
  );
}
