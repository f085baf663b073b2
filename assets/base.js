// @ts-check
// Small helpers that all screens share.

/** @typedef {{ element: HTMLElement, trigger: (name: string, data?: object) => void }} Component */

/**
 * What every screen needs of its own part of the page.
 * @param {HTMLElement} element the component that holds it
 */
export function parts(element) {
  const root = /** @type {HTMLElement} */ (element.querySelector('.gj'));
  /** @type {(selector: string) => any} */
  const find = (selector) => root.querySelector(selector);
  /** @type {(selector: string) => any[]} */
  const findAll = (selector) => [...root.querySelectorAll(selector)];
  let timer = 0;
  let until = 0; // when a message that was given a time goes
  /**
   * A message in the place that the screen has for it; without seconds it stays.
   * @param {string} text
   * @param {number} [seconds]
   */
  function say(text, seconds = 8) {
    const box = find('.gj-message');
    clearTimeout(timer);
    until = text && seconds ? performance.now() + 1000 * seconds : 0;
    box.hidden = !text;
    setText(box.querySelector('span'), text || '');
    // The first screen has its message beside the pictures; on the others it may have been scrolled away.
    if (text && root.closest('.gj-screen')) box.scrollIntoView({ block: 'nearest' });
    if (text && seconds)
      timer = window.setTimeout(() => {
        box.hidden = true;
      }, 1000 * seconds);
  }
  /** Something less urgent: it does not take the place of a message that has its time. @param {string} text */
  const mention = (text) => {
    if (performance.now() >= until) say(text, 0);
  };
  find('.gj-message button')?.addEventListener('click', () => say(''));
  return { root, find, findAll, say, mention };
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] listeners under names that begin with "on"
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child != null)));
  return node;
}

/**
 * Writing the same text again would still cost a layout; frames come eighteen times per second.
 * @param {Element | null} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

/** @param {string} base64 */
export function bytes(base64) {
  const text = atob(base64 || '');
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
/** @param {string} base64 */
export const floats = (base64) => new Float32Array(bytes(base64).buffer);

/** @type {(value: number, low: number, high: number) => number} */
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
/** @param {number} p */
export const percent = (p) => `${Math.round(100 * p)} %`;
export const randomName = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => (b % 36).toString(36)).join('');

/**
 * Colours come from the style sheet, so that light and dark need no code. Read again when the theme changes.
 * @type {{ ink: string, muted: string, line: string, card: string, bad: string, track: string, accent: string, series: string[] }}
 */
export const colours = { ink: '', muted: '', line: '', card: '', bad: '', track: '', accent: '', series: [] };
/** @param {HTMLElement} root */
export function readColours(root) {
  const style = getComputedStyle(root);
  /** @param {string} name */
  const read = (name) => style.getPropertyValue(`--gj-${name}`).trim();
  for (const name of /** @type {const} */ (['ink', 'muted', 'line', 'card', 'bad', 'track']))
    colours[name] = read(name);
  colours.accent = read('with');
  colours.series = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => read(`series-${i}`));
}
/** @param {number} i */
export const seriesColour = (i) => colours.series[i % colours.series.length];

/**
 * A canvas as sharp as the screen; returns its context scaled to CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sharpen(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = 'high';
  return context;
}

/**
 * Decoded here and not by fetch: a data URI would go to the browser's network process and back, for every frame.
 * @param {string} uri
 * @param {...number} crop left, top, width and height
 * @returns {Promise<ImageBitmap>}
 */
export function bitmap(uri, ...crop) {
  const comma = uri.indexOf(',');
  const blob = new Blob([bytes(uri.slice(comma + 1))], { type: uri.slice(5, uri.indexOf(';')) });
  if (!crop.length) return createImageBitmap(blob);
  const [left, top, width, height] = crop;
  return createImageBitmap(blob, left, top, width, height);
}

/**
 * @param {string} uri
 * @param {string} name
 */
export function download(uri, name) {
  const link = make('a', { href: uri, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function downloadBlob(blob, name) {
  const uri = URL.createObjectURL(blob);
  download(uri, name);
  setTimeout(() => URL.revokeObjectURL(uri), 5000);
}

/** A finger has no way to point without tapping. */
export const touch = () => window.matchMedia('(hover: none)').matches;
export const stillness = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;
export const theme = () => (document.body.classList.contains('dark') ? 'dark' : 'light');
