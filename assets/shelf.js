// @ts-check
// What can be drawn, as pictures above the grid: one for each kind of data.
import { make } from './base.js';
import { defaults, shelf } from './state.js';
import { find, model, store } from './store.js';

/** Called with the name of a model that was chosen. @type {{ choose: (name: string) => void }} */
export const shelfEvents = { choose: () => {} };

export function buildShelf() {
  const root = (window.gradio_config?.root ?? '').replace(/\/$/, '');
  const cards = shelf(store.models).map((one) => {
    const picture = one.cover
      ? make('img', { src: `${root}/${one.cover}`, alt: '' })
      : make('i', { 'aria-hidden': 'true' }, one.label.slice(0, 1).toUpperCase());
    return make(
      'button',
      { type: 'button', 'data-model': one.name, onclick: () => shelfEvents.choose(one.name) },
      picture,
      make('span', {}, one.label),
    );
  });
  find('.gj-shelf').replaceChildren(...cards);
  find('.gj-shelf').hidden = cards.length < 2;
  paintShelf();
}

function paintShelf() {
  const { family } = model();
  for (const card of find('.gj-shelf').children)
    card.setAttribute('aria-pressed', String(family.includes(card.dataset.model)));
}

/**
 * The settings after another model was chosen: it opens on what shows it well, or keeps what it knows of what was asked.
 * @param {string} name
 * @param {boolean} keep what was asked
 */
export function settingsFor(name, keep) {
  const before = store.settings;
  const settings = defaults(store.table, store.models, name);
  for (const key of ['chains', 'seed', 'speed', 'view']) settings[key] = before[key];
  const chosen = store.models.find((one) => one.name === name) ?? store.models[0];
  /** @param {string[]} list */
  const known = (list) => (keep ? list.filter((one) => chosen.names.includes(one)) : []);
  Object.assign(settings, { with: known(before.with), without: known(before.without) });
  const nothing = !settings.with.length && !settings.without.length;
  if (nothing && chosen.presets.length) Object.assign(settings, structuredClone(chosen.presets[0].values));
  return settings;
}
