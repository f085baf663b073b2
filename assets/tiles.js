// @ts-check
// What can be done with one picture: open it, star it, lock it, ask for more like it, save it alone.
import { downloadBlob, make } from './base.js';
import { openDetail } from './detail.js';
import { cut, onScreen } from './grid.js';
import { withText } from './png.js';
import { moreLike, post } from './run.js';
import { find, findAll, model, page, say, sentence, store } from './store.js';

/** @typedef {import('./wire.js').Frame} Frame */
/** @typedef {{ src: string, text: string, model: string }} Star */

const ICONS = {
  star: 'M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.8-5.2-2.8-5.2 2.8 1-5.8L3.6 9.7l5.8-.8z',
  lock: 'M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6z',
  like: 'M4 4h7v7H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
  save: 'M12 4v11m-5-5 5 5 5-5M5 20h14',
};
const KEYS = { star: 'S', lock: 'L', like: 'M', save: 'D' };
const LARGE = 512; // pixels of a picture that is saved alone
const MOST_STARS = 24;
const SHELF = 'gibbs-jem-stars';
const SMALLEST = 84; // a picture that is smaller has its buttons in the large view alone

/** @type {Star[]} */
let stars = [];
try {
  stars = JSON.parse(localStorage.getItem(SHELF) ?? '[]');
} catch {
  stars = []; // nothing that we wrote
}

/** @type {(kind: keyof typeof ICONS) => Element} */
export function icon(kind) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', ICONS[kind]);
  svg.append(path);
  return svg;
}

/** What the buttons do, by name. @type {Record<string, (lane: number, chain: number) => void>} */
const DO = {
  star: toggleStar,
  lock: (_, chain) => toggleLock(chain),
  like: (_, chain) => moreLike(chain),
  save: saveAlone,
};

/** @type {(kind: keyof typeof ICONS, on: boolean) => string} */
function words(kind, on) {
  const stays = `it stays when you change an attribute or get new ${model().noun}`;
  return {
    star: on ? 'Remove the star' : 'Star this picture',
    lock: on ? 'Unlock this picture' : `Lock this picture: ${stays}`,
    like: 'More like this',
    save: 'Save this picture',
  }[kind];
}

/**
 * The buttons for one picture.
 * @type {(lane: number, chain: number, labelled?: boolean) => HTMLElement[]}
 */
export function actions(lane, chain, labelled = false) {
  const kinds = /** @type {(keyof typeof ICONS)[]} */ (['star', 'lock', ...(model().levels ? ['like'] : []), 'save']);
  /** @type {Partial<Record<keyof typeof ICONS, boolean>>} */
  const states = { star: starOf(lane, chain) >= 0, lock: store.settings.locked.includes(chain) };
  return kinds.map((kind) => {
    const on = states[kind] ?? false;
    const short = { star: 'Star', lock: on ? 'Unlock' : 'Lock', like: 'More like this', save: 'Save' };
    const pressed = kind in states ? { 'aria-pressed': String(on) } : {};
    return make(
      'button',
      {
        type: 'button',
        'data-tile': kind,
        'aria-label': `${words(kind, on)} (${chain + 1})`,
        title: `${words(kind, on)} (key ${KEYS[kind]})`,
        ...pressed,
        onclick: (/** @type {Event} */ event) => {
          event.stopPropagation();
          DO[kind](lane, chain);
        },
      },
      icon(kind),
      labelled ? short[kind] : null,
    );
  });
}

/**
 * Real buttons over the canvas: a picture can be reached by mouse, finger, keyboard and screen reader.
 * @type {(frame: Frame, cells: { x: number, y: number }[][], size: number, strip: number) => void}
 */
export function buildTiles(frame, cells, size, strip) {
  const several = frame.lanes.length > 1;
  const nodes = cells.flatMap((row, l) =>
    row.map((cell, i) => {
      const label = `Open picture ${i + 1}${several ? ` of ${frame.lanes[l].title}` : ''}`;
      const open = make('button', {
        type: 'button',
        class: 'gj-open',
        'aria-label': label,
        'aria-keyshortcuts': 's l m d',
        onclick: () => openDetail(l, i),
      });
      const box = make('div', { class: 'gj-tile', 'data-lane': l, 'data-chain': i }, open);
      Object.assign(box.style, { left: `${cell.x}px`, top: `${cell.y}px`, width: `${size}px`, height: `${size}px` });
      open.style.height = `${size + strip - 4}px`;
      return box;
    }),
  );
  const tiles = find('.gj-tiles');
  tiles.classList.toggle('gj-small', size < SMALLEST);
  tiles.replaceChildren(...nodes);
  paintLocks();
}

/** The buttons go with the pointer, but not from under a visitor who came by keyboard. */
function disarm() {
  for (const tools of findAll('.gj-tile .gj-tools')) if (!tools.querySelector(':focus-visible')) tools.remove();
}

/** The buttons appear with the picture that the pointer or the focus is on. @param {HTMLElement} tile */
function arm(tile) {
  if (tile.querySelector('.gj-tools')) return;
  disarm();
  const { lane, chain } = tile.dataset;
  const label = `Picture ${Number(chain) + 1}`;
  tile.append(
    make('div', { class: 'gj-tools', role: 'group', 'aria-label': label }, ...actions(Number(lane), Number(chain))),
  );
}

/** What is locked, and what the buttons on show say. */
export function paintLocks() {
  for (const tile of findAll('.gj-tile')) {
    const locked = store.settings.locked.includes(Number(tile.dataset.chain));
    tile.classList.toggle('gj-locked', locked);
    const tools = tile.querySelector('.gj-tools');
    if (!tools) continue;
    const at = [...tools.children].indexOf(document.activeElement);
    tools.replaceChildren(...actions(Number(tile.dataset.lane), Number(tile.dataset.chain)));
    if (at >= 0) tools.children[at].focus();
  }
}

/** @param {number} chain */
export function toggleLock(chain) {
  const { locked } = store.settings;
  store.settings.locked = locked.includes(chain)
    ? locked.filter((one) => one !== chain)
    : [...locked, chain].sort((a, b) => a - b);
  paintLocks();
  if (store.playing) post();
  page.detailChanged?.();
}

/** One picture, enlarged. @type {(lane: number, chain: number, side: number) => HTMLCanvasElement | null} */
export function alone(lane, chain, side) {
  const shown = onScreen();
  if (!shown?.frame.lanes[lane]) return null;
  const sheet = make('canvas', { width: side, height: side });
  const context = sheet.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(cut(shown.bitmaps[lane], shown.frame.lanes[lane], chain), 0, 0, side, side);
  return sheet;
}

/** @type {(lane: number, chain: number) => void} */
function saveAlone(lane, chain) {
  alone(lane, chain, LARGE)?.toBlob((blob) => blob && keepPicture(blob, String(chain + 1)));
}

/** A PNG that carries its name and what was asked. @type {(blob: Blob, part?: string) => Promise<void>} */
export async function keepPicture(blob, part = '') {
  const text = sentence() || 'anything';
  const data = await withText(new Uint8Array(await blob.arrayBuffer()), {
    Title: 'Gibbs-JEM Studio',
    Description: `${text} (${model().title}, seed ${store.settings.seed})`,
    Source: location.href,
  });
  downloadBlob(new Blob([/** @type {BlobPart} */ (data)], { type: 'image/png' }), fileName('png', part));
}

/** @type {(ending: string, part?: string) => string} */
export function fileName(ending, part = '') {
  const words = (sentence() || 'anything').replace(/[^a-z0-9]+/gi, '-').slice(0, 60);
  return `${['gibbs-jem', words, part].filter(Boolean).join('-')}.${ending}`;
}

/** @type {(lane: number, chain: number) => string} */
function sourceOf(lane, chain) {
  const side = onScreen()?.frame.lanes[lane]?.size ?? 64;
  return alone(lane, chain, side)?.toDataURL('image/png') ?? '';
}
/** Where a picture stands among the starred ones; -1 where it is not. @type {(lane: number, chain: number) => number} */
function starOf(lane, chain) {
  const src = stars.length ? sourceOf(lane, chain) : '';
  return stars.findIndex((star) => star.src === src);
}

/** @type {(lane: number, chain: number) => void} */
function toggleStar(lane, chain) {
  const at = starOf(lane, chain);
  if (at >= 0) stars.splice(at, 1);
  else {
    const src = sourceOf(lane, chain);
    if (!src) return;
    stars = [{ src, text: sentence() || 'anything', model: model().label }, ...stars].slice(0, MOST_STARS);
    say('You’ll find it under “Starred”.', 4);
  }
  keepStars();
}

function keepStars() {
  try {
    localStorage.setItem(SHELF, JSON.stringify(stars));
  } catch {
    // no room, or not allowed: they stay until the page is closed
  }
  paintStars();
  paintLocks();
  page.detailChanged?.();
}

export function paintStars() {
  const box = find('.gj-starred');
  box.hidden = !stars.length;
  const nodes = stars.map((star, i) =>
    make(
      'figure',
      {},
      make('img', { src: star.src, alt: star.text, title: star.text }),
      make(
        'button',
        {
          type: 'button',
          'aria-label': `Remove the star from ${star.text}`,
          title: 'Remove',
          onclick: () => {
            stars.splice(i, 1);
            keepStars();
          },
        },
        '×',
      ),
    ),
  );
  box.querySelector('div').replaceChildren(...nodes);
}

export function listenToTiles() {
  const tiles = find('.gj-tiles');
  /** @param {Event} event */
  const tileOf = (event) =>
    /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.gj-tile'));
  for (const kind of ['pointerover', 'focusin'])
    tiles.addEventListener(kind, (/** @type {Event} */ event) => {
      const tile = tileOf(event);
      if (tile) arm(tile);
    });
  tiles.addEventListener('pointerleave', () => {
    disarm();
  });
  tiles.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const tile = tileOf(event);
    const kind = Object.entries(KEYS).find(([, key]) => key === event.key.toUpperCase())?.[0];
    if (!tile || !kind || event.ctrlKey || event.metaKey || event.altKey || (kind === 'like' && !model().levels))
      return;
    event.preventDefault();
    DO[kind](Number(tile.dataset.lane), Number(tile.dataset.chain));
  });
  paintStars();
}
