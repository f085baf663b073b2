// @ts-check
// Attributes as chips with three states. Click or Space: require, exclude, clear in turn; + and - and 0 set one directly.
import { make, setText } from './base.js';
import { anew, walkOn } from './run.js';
import { choose, NEXT, sameChoices, stateOf } from './state.js';
import { asked, find, findAll, labelOf, model, rowOf, store, writeAddress } from './store.js';

/** @typedef {import('./state.js').Choice} Choice */

const SPOKEN = { free: 'not chosen', with: 'required', without: 'excluded' };
/** @type {Map<string, HTMLElement>} */
let chips = new Map();

/** @type {(name: string, state: Choice) => void} */
export function setChoice(name, state) {
  Object.assign(store.settings, choose(store.settings, name, state, model().exclusive[name]));
  delete store.settings.strengths[name];
  choicesChanged();
  walkOn();
}

/** A whole combination begins anew. @param {{ with?: string[], without?: string[] }} choices */
export function setChoices(choices) {
  store.settings.with = [...(choices.with ?? [])];
  store.settings.without = [...(choices.without ?? [])];
  store.settings.strengths = {};
  choicesChanged();
  anew();
}

function choicesChanged() {
  store.walk = '';
  paintChips();
  writeAddress();
}

export function buildChips() {
  chips = new Map();
  const groups = model().groups.map((group) => {
    const nodes = group.names.map(({ name, label }) => {
      const mark = make('i', { 'aria-hidden': 'true' });
      const chip = make('button', { type: 'button', class: 'gj-chip', 'data-name': name }, mark, label);
      chips.set(name, chip);
      return chip;
    });
    const box = { class: 'gj-group', role: 'group', 'aria-label': group.title };
    return make('div', box, make('h3', {}, group.title), make('div', {}, ...nodes));
  });
  find('.gj-chips').replaceChildren(...groups);
  buildPresets();
  paintChips();
}

function buildPresets() {
  const usual = { type: 'button', class: 'gj-preset' };
  const presets = model().presets.map((preset) =>
    make(
      'button',
      {
        ...usual,
        'data-preset': JSON.stringify(preset.values),
        onclick: () => setChoices(structuredClone(preset.values)),
      },
      preset.label,
    ),
  );
  const title = 'A combination that no training image has';
  const surprise = make('button', { ...usual, 'data-do': 'surprise', title }, 'Surprise me');
  const clear = make('button', { ...usual, 'data-do': 'clear' }, 'Clear');
  find('.gj-presets').replaceChildren(...presets, surprise, clear);
}

export function paintChips() {
  for (const [name, chip] of chips) {
    const state = stateOf(store.settings, name);
    chip.dataset.state = state;
    // A button with three states: "mixed" is how a screen reader hears the one that is neither on nor off.
    chip.setAttribute('aria-pressed', { free: 'false', with: 'true', without: 'mixed' }[state]);
    chip.setAttribute('aria-label', `${labelOf(name)}: ${SPOKEN[state]}`);
  }
  for (const node of findAll('[data-preset]'))
    node.setAttribute('aria-pressed', String(sameChoices(JSON.parse(node.dataset.preset), store.settings)));
  buildStrengths();
}

/** The line under each name: P(attribute | image), averaged over the chains of the first column. @param {Float32Array} means */
export function paintSureness(means) {
  model().names.forEach((name, k) => {
    chips.get(name)?.style.setProperty('--p', means[k].toFixed(3));
  });
}

/** @param {{ novel: boolean, count: number, total: number, sentence: string }} badge */
export function paintBadge(badge) {
  const box = find('.gj-badge');
  const free = !asked().length;
  box.dataset.kind = badge.novel ? 'novel' : free ? 'any' : 'seen';
  setText(box.querySelector('b'), badge.novel ? 'Never seen' : free ? '' : 'Seen');
  setText(box.querySelector('span'), badge.sentence);
}

function buildStrengths() {
  const box = find('.gj-strengths');
  box.hidden = !asked().length;
  const { low, high } = rowOf('strengths');
  const rows = asked().map(({ name }) => {
    const value = store.settings.strengths[name] ?? 1;
    const output = make('output', {}, strengthWords(value));
    const input = make('input', { type: 'range', min: low, max: high, step: 0.1, value, 'data-strength': name });
    input.addEventListener('input', () => setText(output, strengthWords(Number(input.value))));
    input.addEventListener('change', () => setStrength(name, Number(input.value)));
    return make('label', {}, make('span', {}, labelOf(name)), input, output);
  });
  const same = rows.length && box.contains(document.activeElement); // being dragged: do not pull it away
  if (!same) box.querySelector('div').replaceChildren(...rows);
}
/** @param {number} value */
const strengthWords = (value) => (value === 1 ? 'normal' : `${+value.toFixed(1)}×`);

/** @type {(name: string, value: number) => void} */
function setStrength(name, value) {
  if (value === 1) delete store.settings.strengths[name];
  else store.settings.strengths[name] = value;
  writeAddress();
  anew(); // chains that have arrived would not feel it
}

export function listenToChips() {
  const box = find('.gj-chips');
  box.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    const chip = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.gj-chip'));
    const name = chip?.dataset.name;
    if (!name) return;
    const state = stateOf(store.settings, name);
    setChoice(name, event.shiftKey && state !== 'without' ? 'without' : NEXT[state]);
  });
  box.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const chip = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.gj-chip'));
    const name = chip?.dataset.name;
    if (!name) return;
    /** @type {Record<string, Choice>} */
    const direct = { '+': 'with', '=': 'with', '-': 'without', 0: 'free', Delete: 'free', Backspace: 'free' };
    /** @type {Record<string, number>} */
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const all = [...chips.values()];
    if (direct[event.key]) setChoice(name, direct[event.key]);
    else if (moves[event.key]) all[(all.indexOf(chip) + moves[event.key] + all.length) % all.length].focus();
    else return;
    event.preventDefault();
  });
}
