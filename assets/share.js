// @ts-check
// Save and share: pictures, animations, a link, and the same pictures as Python and as a command line.
import { colours, download, make, setText } from './base.js';
import { canvas, drawGrid, onScreen, place } from './grid.js';
import { addressOf, find, findAll, sentence, server, settingsToSend, store } from './store.js';
import { fileName, keepPicture } from './tiles.js';

/** PNG of what is on the canvas, on the page's own background, with the name and what was asked below. */
export function savePicture() {
  const layout = place();
  if (!onScreen() || !layout) return;
  const pad = 16;
  const bar = 34;
  const scale = Math.max(2, canvas.width / layout.width);
  const width = (layout.width + 2 * pad) * scale;
  const height = (layout.height + 2 * pad + bar) * scale;
  const sheet = make('canvas', { width: Math.round(width), height: Math.round(height) });
  const context = sheet.getContext('2d');
  context.fillStyle = colours.card;
  context.fillRect(0, 0, width, height);
  context.setTransform(scale, 0, 0, scale, pad * scale, pad * scale);
  context.imageSmoothingQuality = 'high';
  drawGrid(context);
  context.resetTransform();
  context.textAlign = 'left';
  context.font = `${14 * scale}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  const name = 'Gibbs-JEM Studio';
  const line = height - (pad + bar / 2 - 6) * scale;
  const room = layout.width * scale - context.measureText(name).width - 20 * scale;
  context.fillStyle = colours.ink;
  context.fillText(sentence() || 'anything', pad * scale, line, room);
  context.fillStyle = colours.muted;
  context.textAlign = 'right';
  context.fillText(name, width - pad * scale, line);
  sheet.toBlob((/** @type {Blob | null} */ blob) => blob && keepPicture(blob));
}

/** @param {string} format */
export function askForFilm(format) {
  for (const button of findAll('[data-take]')) button.disabled = true;
  server.trigger('film', { format });
}

/** @param {{ src: string, format: string }} reply */
export function showFilm(reply) {
  releaseFilm();
  download(reply.src, fileName(reply.format));
}
export function releaseFilm() {
  for (const button of findAll('[data-take]')) button.disabled = false;
}

/** Why a link, or a recipe, does not bring back the very pictures. */
function whyNot() {
  if (store.why) return `because ${store.why}`;
  return store.chosenFrom ? 'because they are the best of many' : '';
}

/** What a link restores, in words. */
function linkWords() {
  const why = whyNot();
  if (store.playing)
    return 'The link restores what you ask for. Wait until the pictures stand still to share them too.';
  if (why) return `The link restores what you ask for, but not these pictures, ${why}.`;
  if (store.walk) return 'The link restores these very pictures: it repeats the same changes, one after another.';
  return 'The link restores these very pictures.';
}

export function shareLink() {
  return location.origin + addressOf({ walk: whyNot() ? '' : store.walk });
}

export function askForRecipe() {
  setText(find('.gj-link-note'), linkWords());
  if (find('.gj-take').open) server.trigger('recipe', { settings: settingsToSend() });
}

/** @param {{ python: string, command: string, note: string }} reply */
export function showRecipe(reply) {
  setText(find('[data-code=python]'), reply.python);
  // A line may break between words, not after the hyphens of an option.
  const whole = (/** @type {string} */ word) => make('span', word.length < 40 ? { class: 'gj-whole' } : {}, word);
  const words = reply.command.split(' ').flatMap((word, i) => (i ? [' ', whole(word)] : [whole(word)]));
  find('[data-code=command]').replaceChildren(...words);
  const note = find('.gj-recipe-note');
  note.hidden = !reply.note;
  setText(note, reply.note);
}

/** @type {(text: string, button: HTMLElement) => Promise<void>} */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', { style: 'position:fixed;opacity:0' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  const before = button.dataset.words ?? button.textContent ?? '';
  button.dataset.words = before;
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = before;
  }, 1200);
}
