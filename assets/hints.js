// @ts-check
// Three short hints on the first visit. Whoever skips them, or reads them, never sees them again.
import { make, touch } from './base.js';
import { find } from './store.js';

const KEPT = 'gibbs-jem-hints';
const LAST = 'Nothing is lost: the strip under the pictures brings the last few back.';
const HINTS = touch()
  ? [
      'Tap an attribute to require it. The pictures change before your eyes.',
      'Tap a picture to see it large, star it, lock it, or ask for more like it.',
      LAST,
    ]
  : [
      'Click an attribute to require it. The pictures change before your eyes.',
      'Point at a picture to star it, lock it, or ask for more like it. Click it to see it large.',
      LAST,
    ];

function seen() {
  try {
    return localStorage.getItem(KEPT) === 'seen';
  } catch {
    return true; // what cannot be remembered would come back for ever
  }
}

/** @param {number} i */
function show(i) {
  const box = find('.gj-hints');
  if (i >= HINTS.length) {
    localStorage.setItem(KEPT, 'seen');
    box.hidden = true;
    return;
  }
  const last = i === HINTS.length - 1;
  box.hidden = false;
  box.replaceChildren(
    make('p', {}, make('b', {}, `${i + 1} of ${HINTS.length}`), ` ${HINTS[i]}`),
    make(
      'div',
      { class: 'gj-row' },
      make('button', { type: 'button', 'data-hint': 'next', onclick: () => show(i + 1) }, last ? 'Got it' : 'Next'),
      last ? null : make('button', { type: 'button', 'data-hint': 'skip', onclick: () => show(HINTS.length) }, 'Skip'),
    ),
  );
}

export function welcomeNewcomers() {
  if (!seen()) show(0);
}
