// @ts-check
// The state of the first screen as plain values: what a click makes of it, and how an address tells it.
import { clamp } from './base.js';

/** @typedef {import('./wire.js').Row} Row */
/** @typedef {import('./wire.js').Model} Model */
/** @typedef {import('./wire.js').Settings} Settings */
/** @typedef {'free' | 'with' | 'without'} Choice */

/** @type {Record<Choice, Choice>} */
export const NEXT = { free: 'with', with: 'without', without: 'free' };

/** @type {(settings: Settings, name: string) => Choice} */
export const stateOf = (settings, name) =>
  settings.with.includes(name) ? 'with' : settings.without.includes(name) ? 'without' : 'free';

/**
 * The lists after one attribute changed. Requiring it frees the required ones that cannot be true beside it.
 * @type {(settings: Settings, name: string, state: Choice, rivals?: string[]) => { with: string[], without: string[] }}
 */
export function choose(settings, name, state, rivals = []) {
  const out = state === 'with' ? [name, ...rivals] : [name];
  const lists = {
    with: settings.with.filter((one) => !out.includes(one)),
    without: settings.without.filter((one) => one !== name),
  };
  if (state !== 'free') lists[state].push(name);
  return lists;
}

/** @type {(a: { with?: string[], without?: string[] }, b: { with?: string[], without?: string[] }) => boolean} */
export function sameChoices(a, b) {
  /** @param {string[] | undefined} list */
  const key = (list) => [...(list ?? [])].sort().join('\n');
  return key(a.with) === key(b.with) && key(a.without) === key(b.without);
}

/** @type {(table: Row[], models: Model[], name?: string | null) => Settings} */
export function defaults(table, models, name) {
  const model = models.find((one) => one.name === name) ?? models[0];
  /** @type {Record<string, any>} */
  const settings = {};
  for (const row of table) {
    settings[row.key] = row.kind === 'names' || row.kind === 'rows' ? [] : row.kind === 'strengths' ? {} : row.default;
  }
  settings.model = model.name;
  return /** @type {Settings} */ (settings);
}

/**
 * A value from words: brought into range where it can be, undefined where it cannot.
 * @type {(row: Row, text: string, model: Model, models: Model[]) => any}
 */
export function sane(row, text, model, models) {
  if (row.kind === 'names') return [...new Set(text.split(',').filter((name) => model.names.includes(name)))];
  if (row.kind === 'strengths') return saneStrengths(row, text, model);
  if (row.kind === 'text') return text;
  if (row.kind === 'choice') {
    const choices = row.choices.length ? row.choices : models.map((one) => one.name);
    return choices.includes(text) ? text : undefined;
  }
  const number = Number(text);
  if (row.kind === 'rows' || text.trim() === '' || !Number.isFinite(number)) return undefined;
  const value = clamp(number, row.low, row.high);
  return row.kind === 'whole' ? Math.round(value) : value;
}

/**
 * Why a number was brought into range, or not taken: "Pictures: 500 is out of range. Choose 1 to 64 on this server."
 * @type {(row: Row, text: string) => string}
 */
export function refusal({ key, kind, label, low, high }, text) {
  const given = text.trim().slice(0, 20);
  const whole = kind === 'whole' && !Number.isInteger(Number(given));
  const wrong = Number.isNaN(Number(given))
    ? `${given} is not a number`
    : whole
      ? `${given} is not a whole number`
      : `${given} is out of range`;
  const where = key === 'chains' ? ' on this server' : '';
  return `${label}: ${given ? wrong : 'the field is empty'}. Choose ${whole ? 'a whole number from ' : ''}${low} to ${high}${where}.`;
}

/** @type {(row: Row, text: string, model: Model) => Record<string, number>} */
function saneStrengths(row, text, model) {
  const pairs = text.split(',').map((part) => part.split(':'));
  const good = pairs.filter(([name, value]) => model.names.includes(name) && value && Number.isFinite(Number(value)));
  return Object.fromEntries(good.map(([name, value]) => [name, clamp(Number(value), row.low, row.high)]));
}

/** @param {any} value */
function words(value) {
  if (Array.isArray(value)) return value.join(',');
  if (value && typeof value === 'object')
    return Object.entries(value)
      .map(([name, one]) => `${name}:${one}`)
      .join(',');
  return String(value);
}

/**
 * Settings from an address. `ignored` names what is not known here, `limited` what was brought into range.
 * @type {(search: string, table: Row[], models: Model[]) => { settings: Settings, ignored: string[], limited: string[] }}
 */
export function readAddress(search, table, models) {
  const query = new URLSearchParams(search);
  const settings = defaults(table, models, query.get('model'));
  const model = models.find((one) => one.name === settings.model) ?? models[0];
  const ignored = query.has('model') && query.get('model') !== settings.model ? ['Model'] : [];
  const limited = [];
  for (const row of table) {
    const text = query.get(row.key);
    if (text === null || row.key === 'model' || !row.shared) continue;
    const value = sane(row, text, model, models);
    if (value === undefined || (row.kind === 'names' && value.length < text.split(',').filter(Boolean).length))
      ignored.push(row.label);
    if (value === undefined) continue;
    settings[row.key] = value;
    if ((row.kind === 'whole' || row.kind === 'number') && Number(text) !== value) limited.push(row.key);
  }
  settings.without = settings.without.filter((name) => !settings.with.includes(name));
  const opens = !query.has('with') && !query.has('without') && !query.has('free');
  if (opens && model.presets.length)
    Object.assign(settings, { with: [], without: [] }, structuredClone(model.presets[0].values));
  return { settings, ignored, limited };
}

/**
 * The query that brings these settings back. Without any attribute it says so, or the page would open on a preset.
 * @type {(search: string, settings: Settings, table: Row[], models: Model[]) => string}
 */
export function writeAddress(search, settings, table, models) {
  const query = new URLSearchParams(search);
  for (const row of table) query.delete(row.key);
  query.delete('free');
  for (const row of table) {
    const value = settings[row.key];
    const usual = row.key === 'model' ? value === models[0].name : value === row.default;
    const empty = value == null || (typeof value === 'object' && !Object.keys(value).length);
    if (row.shared && !usual && !empty) query.set(row.key, words(value));
  }
  if (!settings.with.length && !settings.without.length) query.set('free', '1');
  return query.toString().replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%3B', ';').replaceAll('%40', '@');
}

/**
 * Smiling, wearing a hat; no glasses. Empty when nothing is chosen.
 * @type {(asked: { with: string[], without: string[] }, model: Model) => string}
 */
export function sentence(asked, model) {
  const all = new Map(model.groups.flatMap((group) => group.names).map((one) => [one.name, one]));
  const yes = asked.with.map((name) => all.get(name)?.yes ?? name).join(', ');
  const no = asked.without.map((name) => all.get(name)?.no ?? name).join(', ');
  return [yes, no].filter(Boolean).join('; ');
}

/**
 * One model for each kind of data: what stands above the grid as pictures.
 * @type {(models: Model[]) => Model[]}
 */
export function shelf(models) {
  const first = models.map((one) => one.family[0]);
  return models.filter((one) => first.includes(one.name) && one.family[0] === one.name);
}
