// @ts-check
// The live state of the screen, and its mirror in the address.
import { parts } from './base.js';
import { readAddress, refusal, sane as saneValue, sentence as sentenceOf, writeAddress as queryOf } from './state.js';

/** @typedef {import('./wire.js').Model} Model */
/** @typedef {import('./wire.js').Row} Row */
/** @typedef {import('./wire.js').Settings} Settings */
/** @typedef {import('./wire.js').Frame} Frame */
/** @typedef {import('./wire.js').Letter} Letter */

export const { root, find, findAll, say, mention } = parts(
  /** @type {HTMLElement} */ (document.querySelector('#gj-studio')),
);

/** What other screens and the tests may use, and where the server's answers arrive. @type {any} */
export const page = (window.gibbsJem ??= {});

export const store = {
  table: /** @type {Row[]} */ ([]),
  models: /** @type {Model[]} */ ([]),
  settings: /** @type {Settings} */ (/** @type {unknown} */ ({ with: [], without: [] })),
  device: '',
  bestOf: 10,
  order: Date.now(),
  fresh: 1,
  run: '',
  playing: false,
  status: 'waiting',
  step: 0,
  fps: 18,
  epoch: 0,
  walk: '', // the way that the pictures have come, as a link tells it
  why: '', // why a link cannot
  chosenFrom: 0, // the pictures are the best of so many times their number
  state: /** @type {number | null} */ (null), // the number of the state on screen, where it was kept
  states: /** @type {number[]} */ ([]),
};

/** Set by mount: sends an event to the server. @type {{ trigger: (name: string, data?: object) => void }} */
export const server = { trigger: () => {} };

/** @param {string} key */
export const rowOf = (key) => /** @type {Row} */ (store.table.find((row) => row.key === key));
export const model = () => store.models.find((one) => one.name === store.settings.model) ?? store.models[0];
/** @param {string} name */
export const attribute = (name) =>
  model()
    .groups.flatMap((group) => group.names)
    .find((one) => one.name === name) ?? { name, label: name, yes: name, no: `no ${name}` };
/** @param {string} name */
export const labelOf = (name) => attribute(name).label;
/** The value in force: the visitor's, or the model's own where the field is empty. @param {string} key */
export const inForce = (key) =>
  store.settings[key] ?? (rowOf(key).own ? (model().sampling[key] ?? 0) : rowOf(key).default);
export const asked = () => [
  ...store.settings.with.map((name) => ({ name, wanted: true })),
  ...store.settings.without.map((name) => ({ name, wanted: false })),
];
export const sentence = () => sentenceOf(store.settings, model());
export const settled = () => store.status === 'settled';
/** @type {(row: Row, text: string) => any} */
export const sane = (row, text) => saneValue(row, text, model(), store.models);

export function openAddress() {
  const { settings, ignored, limited } = readAddress(location.search, store.table, store.models);
  store.settings = settings;
  const words = [];
  if (ignored.length) words.push(`Some of this link’s settings are unknown and were ignored: ${ignored.join(', ')}.`);
  const query = new URLSearchParams(location.search);
  for (const key of limited) words.push(refusal(rowOf(key), query.get(key) ?? ''));
  return words.join(' ');
}

/** The address of what is on screen; the walk belongs to it as soon as it is known. @param {object} [changes] */
export function addressOf(changes = {}) {
  const settings = { ...store.settings, ...changes };
  const query = queryOf(location.search, settings, store.table, store.models);
  return location.pathname + (query ? `?${query}` : '') + location.hash;
}
export const writeAddress = () => history.replaceState(history.state, '', addressOf({ walk: store.walk }));

/** What goes to the server: never a field that is empty, so that the model's own value holds. @returns {Letter} */
export function letter() {
  store.order += 1;
  const settings = settingsToSend();
  const { order, run, playing, fresh } = store;
  return { order, run, playing, fresh, fps: Math.round(store.fps), settings };
}
export const settingsToSend = () =>
  Object.fromEntries(Object.entries(store.settings).filter(([, value]) => value != null && value !== ''));
