// @ts-check
// From A to B: the two ends of a path, and the pictures between them.
import { download, make, setText, stillness } from './base.js';
import { sentence as sentenceOf } from './state.js';
import { find, model, say, server, settingsToSend, store } from './store.js';
import { alone } from './tiles.js';

/** @typedef {{ model: string, with: string[], without: string[], state?: number, place?: number, picture?: HTMLCanvasElement | null }} End */

/** @type {Record<string, End | null>} */
const ends = { a: null, b: null };
let animation = '';

/** What is asked now. @param {string} end */
export function endHere(end) {
  ends[end] = { model: store.settings.model, with: [...store.settings.with], without: [...store.settings.without] };
  paintEnds();
}

/**
 * A picture of the grid; it must stand still, so that the server still has it when the path is drawn.
 * @type {(end: string, lane: number, chain: number) => void}
 */
export function chooseEnd(end, lane, chain) {
  if (store.state === null || lane !== 0) {
    say(lane ? 'Choose a picture from the first column.' : 'Wait until the pictures have arrived, then choose one.');
    return;
  }
  endHere(end);
  Object.assign(/** @type {End} */ (ends[end]), { state: store.state, place: chain, picture: alone(0, chain, 96) });
  find('.gj-path').open = true;
  paintEnds();
  say(`This picture is ${end.toUpperCase()} now. You’ll find it under “From A to B”.`, 5);
}

export function paintEnds() {
  for (const [name, end] of Object.entries(ends)) {
    const box = find(`[data-end=${name}]`);
    const known = end?.model === store.settings.model ? end : null;
    setText(box.querySelector('span'), known ? sentenceOf(known, model()) || 'anything' : 'not chosen');
    const canvas = box.querySelector('canvas');
    canvas.hidden = !known?.picture;
    if (known?.picture) {
      canvas.width = canvas.height = 96;
      canvas.getContext('2d').drawImage(known.picture, 0, 0);
    }
  }
  find('[data-do=path]').disabled = !ready();
}
const ready = () => ends.a?.model === store.settings.model && ends.b?.model === store.settings.model;

export function drawPath() {
  /** @param {End | null} end */
  const plain = (end) => end && { with: end.with, without: end.without, state: end.state, place: end.place };
  find('[data-do=path]').disabled = true;
  setText(find('.gj-path-shown'), 'Drawing the path …');
  server.trigger('path', { settings: settingsToSend(), a: plain(ends.a), b: plain(ends.b) });
}

/** @param {{ strip: string, animation: string, n: number, size: number, from: string, to: string }} reply */
export function showPath(reply) {
  animation = reply.animation;
  const words = `From ${reply.from} to ${reply.to}`;
  const strip = make('img', { class: 'gj-strip', src: reply.strip, alt: `${words}, in ${reply.n} pictures` });
  const box = make('div', { class: 'gj-strip-box', tabindex: '0', role: 'group', 'aria-label': words }, strip);
  const moving = make('img', { class: 'gj-moving', src: reply.animation, alt: `${words}, moving` });
  find('.gj-path-shown').replaceChildren(box, ...(stillness() ? [] : [moving]));
  find('[data-take=path]').hidden = false;
  paintEnds();
}

export function refusePath() {
  setText(find('.gj-path-shown'), '');
  paintEnds();
}

export const savePath = () => download(animation, 'gibbs-jem-from-a-to-b.webp');
