// @ts-check
// On a phone: a small copy of the grid that stays in sight while attributes are chosen below it.
import { setText } from './base.js';
import { canvas, onPainted, onScreen } from './grid.js';
import { onStatus } from './run.js';
import { find, sentence, store } from './store.js';

const box = find('.gj-mini');
const copy = /** @type {HTMLCanvasElement} */ (box.querySelector('canvas'));
const narrow = window.matchMedia('(max-width: 760px)');
let above = false; // the grid itself is above the window

function paint() {
  box.hidden = !(narrow.matches && above && onScreen());
  if (box.hidden || !canvas.width) return;
  const height = 132;
  const width = Math.min(200, Math.round((height * canvas.width) / canvas.height));
  Object.assign(copy.style, { width: `${width}px`, height: `${height}px` });
  Object.assign(copy, { width: 2 * width, height: 2 * height });
  const context = copy.getContext('2d');
  if (!context) return;
  context.imageSmoothingQuality = 'high';
  context.drawImage(canvas, 0, 0, copy.width, copy.height);
  setText(find('.gj-mini-asked'), sentence() || 'anything');
  setText(find('.gj-mini-state'), store.playing ? 'changing …' : '');
}

export function watchGrid() {
  new IntersectionObserver(
    ([entry]) => {
      above = !entry.isIntersecting && entry.boundingClientRect.bottom < 80;
      paint();
    },
    { rootMargin: '-60px 0px 0px 0px' },
  ).observe(find('.gj-view'));
  narrow.addEventListener('change', paint);
  onPainted(paint);
  onStatus(paint);
}
