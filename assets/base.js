// Small helpers that the other scripts share. All scripts of the page run in one scope, in the order of SCRIPTS.
const root = element.querySelector('.gj');
const find = (selector) => root.querySelector(selector);
const findAll = (selector) => [...root.querySelectorAll(selector)];

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// Writing the same text again would still cost a layout; frames come eighteen times a second.
function setText(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function bytes(base64) {
  const text = atob(base64 || '');
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
const floats = (base64) => new Float32Array(bytes(base64).buffer);

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const percent = (p) => Math.round(100 * p) + ' %';
const randomName = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => (b % 36).toString(36)).join('');

// Colours come from the style sheet, so that light and dark need no code. Read again when the theme changes.
let colours = {};
function readColours() {
  const style = getComputedStyle(root);
  const read = (name) => style.getPropertyValue('--gj-' + name).trim();
  colours = { ink: read('ink'), muted: read('muted'), line: read('line'), card: read('card'), bad: read('bad'), track: read('track') };
  colours.accent = read('with');
  colours.series = [1, 2, 3, 4, 5, 6].map((i) => read('series-' + i));
}
const seriesColour = (i) => colours.series[i % colours.series.length];

// A canvas as sharp as the screen; returns its context scaled to CSS pixels.
function sharpen(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = 'high';
  return context;
}

// Decoded here and not by fetch: a data URI would go to the browser's network process and back, for every frame.
function bitmap(uri, ...crop) {
  const comma = uri.indexOf(',');
  const type = uri.slice(5, uri.indexOf(';'));
  return createImageBitmap(new Blob([bytes(uri.slice(comma + 1))], { type }), ...crop);
}

function download(uri, name) {
  const link = make('a', { href: uri, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

let messageTimer = 0;
function say(text, seconds = 8) {
  const box = find('.gj-message');
  clearTimeout(messageTimer);
  box.hidden = !text;
  setText(box.querySelector('span'), text || '');
  if (text && seconds) messageTimer = setTimeout(() => { box.hidden = true; }, 1000 * seconds);
}
