// @ts-check
// The grid of pictures: one canvas, enlarged smoothly. The newest frame wins: a slow browser drops frames, never lags.
import { bitmap, colours, seriesColour, sharpen, stillness } from './base.js';
import { find, model } from './store.js';
import { buildTiles } from './tiles.js';

/** @typedef {import('./wire.js').Frame} Frame */
/** @typedef {import('./wire.js').Lane} Lane */
/** @typedef {{ x: number, y: number }} Cell */

export const canvas = /** @type {HTMLCanvasElement} */ (find('.gj-canvas'));
const fade = /** @type {HTMLCanvasElement} */ (find('.gj-fade'));
const GAP = 10;
const STRIP = 16; // under each picture: how sure the model is of what was asked
const FADE = 450; // milliseconds
const SLOW = 60; // milliseconds between two frames from which on the eye sees steps: then one melts into the next
const LONGEST_MELT = 160;
const EVERY = 30; // milliseconds between two repaints of a melting picture
export const counters = { frames: 0, shownStep: -1, shownOrder: -1, shownRun: '', shownEpoch: -1, shownAt: 0 };

/** @type {{ width: number, height: number, size: number, cells: Cell[][], titles: (Cell & { text: string })[], key: string } | null} */
let layout = null;
let drawing = false;
/** @type {Frame | null} */
let waiting = null;
/** @typedef {{ frame: Frame, bitmaps: ImageBitmap[] }} Shown */
/** On the canvas now. @type {Shown | null} */
let shown = null;
/** What it melts out of. @type {Shown | null} */
let before = null;
let melting = 0; // the request for the next repaint
let gap = 0; // milliseconds between the last frames, about
/** @type {(() => void)[]} */
const painted = [];

export const onScreen = () => shown;
export const place = () => layout;
/** Called after each frame that was drawn. @param {() => void} listener */
export const onPainted = (listener) => painted.push(listener);

/** @param {Frame} frame */
const layoutKey = (frame) => frame.lanes.map((lane) => `${lane.n}/${lane.size}/${lane.title}`).join('|');

/**
 * Where every picture stands. Depends on the number of chains and on the width alone: nothing moves while streaming.
 * @param {Frame} frame
 * @param {number} width
 */
function arrange(frame, width) {
  const { lanes } = frame;
  const stacked = lanes.length > 1 && width < 380;
  const across = stacked ? 1 : lanes.length;
  const title = lanes.length > 1 ? 26 : 0;
  const between = 22;
  const laneWidth = (width - between * (across - 1)) / across;
  const { columns, n } = lanes[0];
  const gap = columns > 6 ? 5 : laneWidth < 420 ? 6 : GAP;
  const size = (laneWidth - gap * (columns - 1)) / columns;
  const rows = Math.ceil(n / columns);
  const down = size + STRIP + Math.max(2, gap - 6);
  const laneHeight = title + rows * down - Math.max(2, gap - 6);
  /** @param {number} l */
  const corner = (l) => ({
    x: stacked ? 0 : l * (laneWidth + between),
    y: stacked ? l * (laneHeight + 12) : 0,
  });
  const cells = lanes.map((lane, l) =>
    Array.from({ length: lane.n }, (_, i) => ({
      x: corner(l).x + (i % columns) * (size + gap),
      y: corner(l).y + title + Math.floor(i / columns) * down,
    })),
  );
  const titles = title ? lanes.map((lane, l) => ({ ...corner(l), text: lane.title })) : [];
  const height = stacked ? lanes.length * laneHeight + 12 * (lanes.length - 1) : laneHeight;
  return { width, height, size, cells, titles, key: layoutKey(frame) };
}

/** @param {Frame} frame */
function relayout(frame) {
  find('.gj-view').classList.toggle('gj-wide', frame.lanes.length > 1);
  const width = Math.floor(find('.gj-grid').clientWidth);
  if (layout && layout.width === width && layout.key === layoutKey(frame)) return layout;
  layout = arrange(frame, width);
  for (const node of [canvas, fade]) {
    node.style.width = `${layout.width}px`;
    node.style.height = `${layout.height}px`;
  }
  buildTiles(frame, layout.cells, layout.size, STRIP);
  return layout;
}

/** @param {Frame} frame */
export async function showFrame(frame) {
  if (drawing) {
    waiting = frame;
    return;
  }
  drawing = true;
  try {
    const bitmaps = await Promise.all(frame.lanes.map((lane) => bitmap(lane.src)));
    const other = shown && frame.epoch !== shown.frame.epoch;
    if (other) crossFade();
    follow({ frame, bitmaps }, Boolean(other));
    counters.frames += 1;
    counters.shownStep = frame.step;
    counters.shownOrder = frame.order;
    counters.shownRun = frame.run;
    counters.shownEpoch = frame.epoch;
    counters.shownAt = performance.now();
    canvas.dataset.step = String(frame.step);
    if (frame.digest) canvas.dataset.digest = frame.digest;
    else delete canvas.dataset.digest;
    for (const listener of painted) listener();
  } catch (error) {
    console.warn('A frame could not be drawn', error);
  } finally {
    drawing = false;
  }
  if (waiting) {
    const next = waiting;
    waiting = null;
    showFrame(next);
  }
}

/** The next frame takes the place of the one on screen, at once or melting into it. @type {(next: Shown, other: boolean) => void} */
function follow(next, other) {
  cancelAnimationFrame(melting);
  for (const one of before?.bitmaps ?? []) one.close();
  before = shown;
  shown = next;
  const now = performance.now();
  gap = 0.7 * gap + 0.3 * Math.min(400, now - counters.shownAt);
  const melts = gap > SLOW && !other && !next.frame.digest && before?.frame.status === 'running' && !stillness();
  if (melts && before && layoutKey(before.frame) === layoutKey(next.frame))
    melt(now, Math.min(LONGEST_MELT, 0.9 * gap));
  else paintGrid();
}

/** @type {(began: number, time: number, due?: number) => void} */
function melt(began, time, due = 0) {
  const now = performance.now();
  const share = Math.min(1, (now - began) / time);
  const late = now >= due || share === 1;
  if (late) paintGrid(share);
  if (share < 1) melting = requestAnimationFrame(() => melt(began, time, late ? now + EVERY : due));
  else for (const listener of painted) listener();
}

/** Other pictures are coming: the old ones fade over them. */
function crossFade() {
  if (stillness() || !canvas.width || typeof fade.animate !== 'function') return;
  fade.width = canvas.width;
  fade.height = canvas.height;
  fade.getContext('2d')?.drawImage(canvas, 0, 0);
  fade.animate([{ opacity: 1 }, { opacity: 0 }], { duration: FADE, easing: 'ease-out' });
}

/** @param {number} [share] how much of the newest frame there is already; the rest is the one before */
export function paintGrid(share = 1) {
  if (!shown || find('.gj-grid').clientWidth === 0) return;
  const { width, height } = relayout(shown.frame);
  const context = sharpen(canvas, width, height);
  context.clearRect(0, 0, width, height);
  drawGrid(context, share);
}

/**
 * What is on screen, on any canvas, in the screen's own units.
 * @type {(context: CanvasRenderingContext2D, share?: number) => void}
 */
export function drawGrid(context, share = 1) {
  if (!shown || !layout) return;
  const { frame, bitmaps } = shown;
  const { size, cells, titles } = layout;
  context.font = '600 13px system-ui, sans-serif';
  context.fillStyle = colours.ink;
  context.textBaseline = 'middle';
  for (const title of titles) context.fillText(title.text, title.x, title.y + 12);
  const asked = askedOf(frame);
  frame.lanes.forEach((lane, l) => {
    cells[l].forEach((cell, i) => {
      if (share < 1 && before) paintTile(context, before.bitmaps[l], lane, i, cell, size);
      context.globalAlpha = share;
      paintTile(context, bitmaps[l], lane, i, cell, size);
      context.globalAlpha = 1;
      paintStrip(context, lane, i, cell, asked, size);
    });
  });
}

// A picture is cut out at its own size first: enlarged straight from the sheet, its neighbours' edges would show.
const cutting = document.createElement('canvas');
/** @type {(picture: ImageBitmap, lane: Lane, i: number) => HTMLCanvasElement} */
export function cut(picture, lane, i) {
  const { size, columns } = lane;
  if (cutting.width !== size) {
    cutting.width = size;
    cutting.height = size;
  }
  const left = (i % columns) * size;
  const top = Math.floor(i / columns) * size;
  cutting.getContext('2d')?.drawImage(picture, left, top, size, size, 0, 0, size, size);
  return cutting;
}

/** @type {(context: CanvasRenderingContext2D, picture: ImageBitmap, lane: Lane, i: number, cell: Cell, size: number) => void} */
function paintTile(context, picture, lane, i, cell, size) {
  context.save();
  context.beginPath();
  context.roundRect(cell.x, cell.y, size, size, Math.min(10, size / 9));
  context.clip();
  context.drawImage(cut(picture, lane, i), cell.x, cell.y, size, size);
  context.restore();
}

/** @typedef {{ name: string, wanted: boolean, k: number }} Asked */
/** @type {(context: CanvasRenderingContext2D, lane: Lane, i: number, cell: Cell, asked: Asked[], size: number) => void} */
function paintStrip(context, lane, i, cell, asked, size) {
  if (!asked.length || !lane.sure) return;
  const gap = 3;
  const top = cell.y + size + 4;
  const width = Math.max(1, (size - gap * (asked.length - 1)) / asked.length);
  asked.forEach(({ k, wanted }, j) => {
    const p = (lane.sure?.[i * (lane.attributes ?? 0) + k] ?? 0) / 255;
    const left = cell.x + j * (width + gap);
    bar(context, left, top, width, colours.track);
    bar(context, left, top, Math.max(2, width * (wanted ? p : 1 - p)), seriesColour(j));
  });
}

/** @type {(context: CanvasRenderingContext2D, left: number, top: number, width: number, colour: string) => void} */
function bar(context, left, top, width, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(left, top, width, 5, 2.5);
  context.fill();
}

/** @param {Frame} frame */
function askedOf(frame) {
  const { names } = model();
  /** @param {boolean} wanted */
  const one = (wanted) => (/** @type {string} */ name) => ({ name, wanted, k: names.indexOf(name) });
  return [...frame.with.map(one(true)), ...frame.without.map(one(false))].filter((found) => found.k >= 0);
}
