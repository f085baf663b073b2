// @ts-check
// "Edit": attributes to add or remove, variants that come back, and a line between before and after.
import { download, make, setText } from './base.js';

/** @typedef {import('./photo.js').Reply} Reply */
/** @typedef {'with' | 'without'} Key */
/** @typedef {{ name: string, key: Key, label: string, title: string }} Choice what may change about one attribute */

/** @param {{ find: (selector: string) => any, act: (name: string) => any, photo: import('./photo.js').Photo, request: (name: string, values?: object) => void }} parts */
export function mountEdit({ find, act, photo, request }) {
  /** @type {{ with: string[], without: string[], seed: number, images: string[], shown: number, timer: number }} */
  const edit = { with: [], without: [], seed: 0, images: [], shown: 0, timer: 0 };
  const state = (/** @type {string} */ text) => setText(find('.gjp-state'), text);

  /** @param {{ level: number }} hello */
  function welcome(hello) {
    act('level').value = hello.level;
    paintLevel();
  }

  function paintLevel() {
    const value = Number(act('level').value);
    setText(find('.gjp-level output'), value < 1.8 ? 'a little' : value < 4.2 ? 'some' : 'a lot');
  }

  /** A new answer: nothing is changed yet. A picture that the model does not know is not edited. @param {Reply} reply */
  function reset(reply) {
    Object.assign(edit, { with: [], without: [], seed: 0, images: [], shown: 0 });
    clearTimeout(edit.timer);
    find('.gjp-edit').hidden = reply.greyed;
    find('.gjp-result').hidden = act('again').hidden = act('save').hidden = true;
    const facts = photo.models.find((one) => one.name === reply.model);
    find('.gjp-level').hidden = !facts?.levels;
    find('.gjp-before').src = reply.crop;
    state('');
    paintChips();
  }

  function paintChips() {
    const { rows } = /** @type {Reply} */ (photo.reply);
    const choices = rows.map(choice).sort((a, b) => a.label.localeCompare(b.label));
    const nodes = ['Add', 'Remove'].flatMap((title) => {
      const chips = choices.filter((one) => one.title === title).map(chip);
      return chips.length ? [make('div', { class: 'gj-group' }, make('h3', {}, title), make('div', {}, ...chips))] : [];
    });
    find('.gjp-chips').replaceChildren(...nodes);
  }

  /** What a visitor may change about one attribute. Who has "No beard" may add one, not remove it. @type {(row: import('./photo.js').Row) => Choice} */
  function choice({ name, label, p }) {
    const [, none, rest] = /** @type {RegExpExecArray} */ (/^(No )?(.*)$/.exec(label));
    const has = p > 0.5;
    return {
      name,
      key: has ? 'without' : 'with',
      label: none ? rest[0].toUpperCase() + rest.slice(1) : label,
      title: has === Boolean(none) ? 'Add' : 'Remove',
    };
  }

  /** @param {Choice} choice */
  function chip({ key, name, label }) {
    const on = edit[key].includes(name);
    const mark = make('i', { 'aria-hidden': 'true' });
    const head = { type: 'button', class: 'gj-chip', 'data-name': name, 'aria-pressed': String(on) };
    const onclick = () => toggle(key, name);
    return make('button', { ...head, 'data-state': on ? key : 'free', onclick }, mark, label);
  }

  /** @type {(key: Key, name: string) => void} */
  function toggle(key, name) {
    const chosen = edit[key].includes(name);
    const facts = photo.models.find((one) => one.name === photo.reply?.model);
    edit[key] = chosen ? edit[key].filter((one) => one !== name) : [...edit[key], name];
    if (!chosen && key === 'with') {
      // What cannot be true beside it is not asked for as well.
      edit.with = edit.with.filter((one) => !(facts?.rivals[name] ?? []).includes(one));
    }
    edit.seed = 0;
    paintChips();
    soon();
  }

  function soon() {
    clearTimeout(edit.timer);
    if (!edit.with.length && !edit.without.length) {
      find('.gjp-result').hidden = act('again').hidden = act('save').hidden = true;
      state('');
      return;
    }
    edit.timer = window.setTimeout(run, 300);
  }

  function run() {
    state('Editing…');
    request('modify', { with: edit.with, without: edit.without, level: Number(act('level').value), seed: edit.seed });
  }

  /** @param {{ images: string[], has: boolean[] }} reply */
  function show(reply) {
    Object.assign(edit, { images: reply.images, shown: Math.max(0, reply.has.indexOf(true)) });
    find('.gjp-result').hidden = act('again').hidden = act('save').hidden = false;
    const few = reply.has.filter(Boolean).length;
    const all = reply.has.length;
    const more = find('.gjp-level').hidden ? 'Ask' : 'Raise “How much may change”, or ask';
    const hint = few < all ? ` ${more} for more variants.` : '';
    state(`The model sees the change in ${few} of ${all} variants.${hint}`);
    paint();
  }

  function paint() {
    const variants = edit.images.map((src, i) => {
      const onclick = () => {
        edit.shown = i;
        paint();
      };
      const head = { type: 'button', 'aria-pressed': String(i === edit.shown), 'aria-label': `Variant ${i + 1}` };
      return make('button', { ...head, onclick }, make('img', { src, alt: '' }));
    });
    find('.gjp-variants').replaceChildren(...variants);
    find('.gjp-after').src = edit.images[edit.shown];
  }

  function forget() {
    Object.assign(edit, { images: [], with: [], without: [] });
    clearTimeout(edit.timer);
    find('.gjp-variants').replaceChildren();
    find('.gjp-chips').replaceChildren();
    find('.gjp-edit').hidden = find('.gjp-result').hidden = true;
    state('');
  }

  const split = () => find('.gjp-ba').style.setProperty('--cut', act('split').value);
  act('split').addEventListener('input', split);
  split();
  act('level').addEventListener('input', paintLevel);
  act('level').addEventListener('change', soon);
  const actions = {
    again: () => {
      edit.seed += 1;
      run();
    },
    save: () => download(edit.images[edit.shown], 'edited.png'),
  };
  return { welcome, reset, show, forget, actions, still: () => clearTimeout(edit.timer), stopped: () => state('') };
}
