// @ts-check
// The last states as a strip of small grids: a click goes back.
import { make } from './base.js';
import { canvas } from './grid.js';
import { goBack } from './run.js';
import { find, say, sentence, store } from './store.js';

/** @typedef {import('./wire.js').Settings} Settings */

const SIDE = 56; // pixels of a small grid
/** @type {Map<number, { settings: Settings, picture: HTMLCanvasElement, text: string }>} */
const known = new Map();

/** Keep the state that has just arrived on screen. */
export function noteState() {
  const { state, states } = store;
  for (const number of [...known.keys()]) if (!states.includes(number)) known.delete(number);
  if (state !== null && !known.has(state)) {
    const picture = make('canvas', { width: 2 * SIDE, height: 2 * SIDE, 'aria-hidden': 'true' });
    picture.getContext('2d').drawImage(canvas, 0, 0, 2 * SIDE, 2 * SIDE);
    known.set(state, { settings: structuredClone(store.settings), picture, text: sentence() || 'anything' });
  }
  paintStates();
}

/** @param {number} number */
function back(number) {
  const state = known.get(number);
  if (!state) {
    say('These pictures are no longer kept.');
    return;
  }
  goBack(number, state.settings);
}

/** To the state before the one on screen; while pictures are on their way, to the last that stood. */
export function undo() {
  const numbers = [...known.keys()];
  const here = store.state === null ? numbers.length : numbers.indexOf(store.state);
  if (here > 0) back(numbers[here - 1]);
}

export function paintStates() {
  const box = find('.gj-past');
  const numbers = [...known.keys()];
  box.hidden = numbers.length < 2;
  const here = store.playing ? null : store.state;
  const nodes = numbers.map((number) => {
    const { picture, text } = /** @type {{ picture: HTMLCanvasElement, text: string }} */ (known.get(number));
    const current = number === here ? { 'aria-current': 'true' } : {};
    const label = `Back to: ${text}`;
    return make(
      'button',
      {
        type: 'button',
        'data-state': number,
        title: label,
        'aria-label': label,
        ...current,
        onclick: () => back(number),
      },
      picture,
    );
  });
  const strip = box.querySelector('div');
  const more = nodes.length > strip.childElementCount;
  strip.replaceChildren(...nodes);
  if (more) strip.scrollLeft = strip.scrollWidth; // the newest is in sight
  find('[data-do=undo]').disabled = numbers.length < 2 || (here !== null && numbers[0] === here);
}
