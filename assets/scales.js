// @ts-check
// The arithmetic of plots and gauges.

export const DRAWN = 150; // points of a line on screen
export const LONGEST = 600; // points kept of each trace; when full, every second one goes

/**
 * Few enough points to draw, the last among them.
 * @template T
 * @param {T[]} list
 */
export function some(list) {
  const every = Math.ceil(list.length / DRAWN);
  return every < 2 ? list : list.filter((_, i) => i % every === 0 || i === list.length - 1);
}

/**
 * @template T
 * @param {T[]} list
 */
export const thin = (list) =>
  list.length > LONGEST ? list.filter((_, i) => i % 2 === 0 || i === list.length - 1) : list;

/** @type {(low: number, high: number, count?: number) => number[]} */
export function niceTicks(low, high, count = 4) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999999) ?? 10 * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
    ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

/** @param {number} value */
export const compact = (value) =>
  Math.abs(value) >= 1000 ? `${+(value / 1000).toPrecision(3)}k` : String(+value.toPrecision(3));

/**
 * The middle of all values: one chain that goes astray must not flatten the others.
 * @param {number[]} values
 * @returns {[number, number]}
 */
export function robustRange(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return [0, 1];
  const low = sorted[Math.floor(0.01 * (sorted.length - 1))];
  const high = sorted[Math.ceil(0.985 * (sorted.length - 1))];
  const pad = 0.06 * (high - low || 1);
  return [low - pad, high + pad];
}

/** @param {Iterable<number>} values */
export function finiteMean(values) {
  const good = [...values].filter(Number.isFinite);
  return good.reduce((sum, value) => sum + value, 0) / (good.length || 1);
}

/**
 * Where a line must not go on: chains that are lifted are not on the way that they came.
 * @param {{ step: number, level: number }[]} points
 */
export const lifts = (points) =>
  points.flatMap((point, i) =>
    i && (point.level > points[i - 1].level + 1e-6 || point.step <= points[i - 1].step) ? [i] : [],
  );

/**
 * A place on a scale whose steps are equal ratios, from 0 to 1, and back.
 * @type {(value: number, low: number, high: number) => number}
 */
export const toShare = (value, low, high) =>
  Math.min(1, Math.max(0, Math.log(Math.max(value, 1e-9) / low) / Math.log(high / low)));
/** @type {(share: number, low: number, high: number) => number} */
export const fromShare = (share, low, high) => low * (high / low) ** share;

/** @param {number} level */
export const levelWords = (level) => (level > 0 ? String(+level.toPrecision(2)) : '0');
