// @ts-check
// The second screen: a picture goes to the server, what the model says of it comes back.
import { make, parts, percent, setText, theme } from './base.js';
import { mountCamera } from './photo_camera.js';
import { mountCrop } from './photo_crop.js';
import { mountEdit } from './photo_edit.js';

/** @typedef {import('./photo_crop.js').Box} Box */
/**
 * What the model says of one attribute (app/photo.py), and how often test pictures with that answer really had it.
 * @typedef {{ name: string, label: string, p: number, sentence: string, enough: boolean, count?: number | null,
 *   rate: number, low: number, high: number, truth?: boolean }} Row
 */
/**
 * What the model says of a picture.
 * @typedef {{ model: string | null, attribute: string, face?: number, faces: Box[], picture?: string, crop: string,
 *   size: { width: number, height: number }, box: Box, note: string, greyed: boolean, together: string, rows: Row[],
 *   gate: { verdict: string, title: string, sentence: string } }} Reply
 */
/**
 * The state of the screen. `chosen`: the model that the visitor chose for this picture; without one the server chooses
 * by the picture. `named`: the model that the link names.
 * @typedef {{ models: { name: string, title: string, levels: boolean, rivals: Record<string, string[]> }[], order: number,
 *   reply: Reply | null, attribute: string | null, box: Box | null, face: number, chosen: string | null, theme: string,
 *   limit: number, named: string | null, sent?: number, drawn?: number }} Photo
 */

const page = (window.gibbsJem ??= {});
const NOTHING =
  'Choose a picture to see what the model says about each attribute, and how often test pictures with that answer had it.';

const asPercent = (/** @type {number} */ p) =>
  p > 0 && p < 0.01 ? '< 1 %' : p > 0.99 && p < 1 ? '> 99 %' : percent(p);
/** A model is never certain, whatever its last digit says. @param {number} p */
const said = (p) => asPercent(Math.min(Math.max(p, 1e-6), 1 - 1e-6));

/** @param {import('./base.js').Component} component */
export function mount({ element, trigger }) {
  const { root, find, findAll, say } = parts(element);
  // These are mounted after this script has run.
  /** @type {(selector: string) => any} */
  const right = (selector) => document.querySelector(`#gj-photo-rows ${selector}`);
  /** @type {(selector?: string) => any} */
  const curve = (selector = '') => document.querySelector(`#gj-photo-curve ${selector}`.trim());
  const act = (/** @type {string} */ name) => find(`[data-photo=${name}]`);
  const query = new URLSearchParams(location.search);
  // A link to this screen may name a model; one to the studio speaks of the studio's.
  const named = query.get('screen') === 'photo' ? query.get('model') : null;
  /** @type {Photo} */
  const photo = {
    ...{ models: [], order: Date.now(), reply: null, attribute: null, box: null, face: 0, chosen: null, limit: 0 },
    ...{ theme: theme(), named },
  };

  /** Send something to the server under a new number; an answer to an older one is not looked at. @type {(name: string, values?: object) => void} */
  function request(name, values = {}) {
    photo.order += 1;
    root.dataset.busy = 'yes';
    say('');
    trigger(name, { order: photo.order, model: photo.reply?.model, face: photo.face, box: photo.box, ...values });
  }

  const crop = mountCrop({ find, photo, changed: () => ask() });
  const edit = mountEdit({ find, act, photo, request });
  const camera = mountCamera({ find, say, send });

  /** @type {Record<string, (reply: any) => void>} */
  const REPLY = {
    refused: (reply) => {
      say(reply.message, 0);
      edit.stopped();
    },
    forgotten,
    photo: show,
    edited: (reply) => edit.show(reply),
    studio: toStudio,
  };
  page.onPhoto = (/** @type {any} */ reply) => {
    if (reply.kind === 'hello') return welcome(reply);
    if (reply.order !== photo.order && reply.kind !== 'forgotten') return; // what is gone is gone
    root.dataset.busy = '';
    REPLY[reply.kind]?.(reply);
  };

  /** @param {{ models: Photo['models'], bytes: number, kept: string, level: number }} hello */
  function welcome(hello) {
    Object.assign(photo, { models: hello.models, limit: hello.bytes });
    const options = hello.models.map((one) => make('option', { value: one.name }, one.title));
    act('model').replaceChildren(make('option', { value: '' }, 'Choose automatically'), ...options);
    photo.chosen = hello.models.some((one) => one.name === photo.named) ? photo.named : null;
    act('model').value = photo.chosen ?? '';
    setText(find('.gjp-kept'), hello.kept);
    edit.welcome(hello);
  }

  // Ask for a prediction; `source` is a new picture, otherwise the present one in another crop or under another model.
  /** @param {object | null} [source] */
  function ask(source = null) {
    if (source) Object.assign(photo, { box: null, face: 0, attribute: null, sent: performance.now() });
    if (source && photo.reply) photo.chosen = null; // each picture chooses for itself
    const model = photo.chosen ?? (source ? null : photo.reply?.model);
    request('show', { model, attribute: photo.attribute, theme: theme(), ...source });
  }

  /** @param {Blob | null | undefined} file */
  function send(file) {
    if (!file) return;
    if (file.size > photo.limit) {
      const [size, most] = [file.size, photo.limit].map((bytes) => Math.round(bytes / 2 ** 20));
      say(`The picture is ${size} MB; at most ${most} MB is allowed.`, 0);
      return;
    }
    const reader = new FileReader();
    reader.onload = () => ask({ data: String(reader.result).split(',')[1] || '' });
    reader.onerror = () => say('The picture could not be read.', 0);
    reader.readAsDataURL(file);
  }

  /** @param {Reply} reply */
  function show(reply) {
    Object.assign(photo, { reply, attribute: reply.attribute, face: reply.face ?? 0 });
    find('.gjp-shown').hidden = act('forget').hidden = false;
    act('model').value = reply.model;
    if (reply.picture) find('.gjp-whole img').src = reply.picture;
    find('.gjp-whole').style.setProperty('--ratio', reply.size.width / reply.size.height);
    find('.gjp-crop').src = reply.crop;
    crop.place(reply.box, true);
    setText(find('.gjp-note'), reply.note);
    find('.gjp-note').hidden = !reply.note;
    paintFaces(reply);
    paintGate(reply);
    paintRows(reply);
    edit.reset(reply);
    select(reply.attribute, false);
    if (reply.picture && innerWidth > 760) window.scrollTo(0, 0);
    else if (reply.picture) find('.gjp-shown').scrollIntoView(); // on a phone it stands below the button that chose it
    photo.drawn = performance.now();
  }

  /** @param {Reply} reply */
  function paintFaces(reply) {
    const several = reply.faces.length > 1 ? reply.faces : [];
    const buttons = several.map((_, i) => {
      const pressed = String(i === reply.face && !photo.box);
      const onclick = () => {
        Object.assign(photo, { box: null, face: i });
        ask();
      };
      return make('button', { type: 'button', 'aria-pressed': pressed, onclick }, `Face ${i + 1}`);
    });
    find('.gjp-faces').replaceChildren(...buttons);
    find('.gjp-faces').hidden = !buttons.length;
  }

  /** @param {Reply} reply */
  function paintGate(reply) {
    const { gate } = reply;
    const box = find('.gjp-gate');
    box.dataset.verdict = gate.verdict || 'none';
    box.replaceChildren(...(gate.title ? [make('b', {}, gate.title)] : []), make('span', {}, gate.sentence));
    for (const node of [right('.gjp-right') ?? right(''), curve()]) node?.classList.toggle('gjp-grey', reply.greyed);
  }

  /** @param {Reply} reply */
  function paintRows(reply) {
    const known = reply.rows.some((row) => row.truth !== undefined);
    right('.gjp-rows').replaceChildren(...reply.rows.map((row) => rowOf(row, known)));
    right('.gjp-order').hidden = right('.gjp-legend').hidden = false;
    right('.gjp-known').hidden = !known;
    right('.gjp-rows').classList.toggle('gjp-with-truth', known);
  }

  /** @type {(row: Row, known: boolean) => HTMLElement} */
  function rowOf(row, known) {
    const at = (/** @type {number} */ p) => `left:${(100 * p).toFixed(2)}%`;
    const width = row.enough ? `width:${(100 * Math.max(0.004, row.high - row.low)).toFixed(2)}%` : '';
    const was = row.enough ? asPercent(row.rate) : row.count == null ? '' : 'too few';
    const told = row.truth !== undefined; // an avatar's attributes are not all that a model of photographs asks for
    const truth = row.truth ? 'yes' : 'no';
    const title = told ? `${row.sentence} Actually: ${truth}.` : row.sentence;
    const head = { type: 'button', class: 'gjp-row', 'data-name': row.name, 'data-enough': String(row.enough) };
    const right_ = row.p > 0.5 === row.truth;
    return make(
      'button',
      { ...head, title, onclick: () => select(row.name, true) },
      make('span', {}, row.label),
      make(
        'span',
        { class: 'gjp-track', 'aria-hidden': 'true' },
        row.enough ? make('i', { style: `${at(row.low)};${width}` }) : null,
        row.enough ? make('b', { style: at(row.rate) }) : null,
        make('u', { style: at(row.p) }),
      ),
      make('em', {}, said(row.p)),
      make('small', {}, was),
      known ? make('s', { 'data-right': String(right_) }, told ? `${right_ ? '✓' : '✗'} ${truth}` : '') : null,
    );
  }

  /** @type {(name: string | null, byHand: boolean) => void} */
  function select(name, byHand) {
    photo.attribute = name;
    const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('#gj-photo-rows .gjp-row'));
    for (const row of all) row.setAttribute('aria-pressed', String(row.dataset.name === name));
    const reply = /** @type {Reply} */ (photo.reply);
    const row = reply.rows.find((one) => one.name === name);
    setText(curve('h2'), row ? row.label : 'All attributes together');
    setText(curve('.gjp-sentence'), row ? row.sentence : reply.together);
    curve('.gjp-said').hidden = false;
    curve().classList.add('gjp-filled');
    if (byHand) curve().classList.add('gjp-open'); // a phone shows it over the rows
    if (byHand) drawCurve();
  }

  function drawCurve() {
    if (document.body.dataset.screen !== 'photo' || !photo.reply) return;
    const row = photo.reply.rows.find((one) => one.name === photo.attribute);
    const at = row ? row.p : null;
    const { order, reply } = photo;
    trigger('curve', { order, model: reply.model, attribute: row ? row.name : 'all', at, theme: theme() });
  }

  /** @param {{ model: string, with: string[], without: string[] }} reply */
  function toStudio(reply) {
    page.photo = true;
    page.go('studio', false);
    page.open({ model: reply.model, start: 'photo', with: reply.with, without: reply.without, compare: 'none' });
  }

  function forgotten() {
    Object.assign(photo, { reply: null, chosen: null, attribute: null, box: null });
    find('.gjp-shown').hidden = act('forget').hidden = true;
    for (const image of findAll('img')) image.removeAttribute('src');
    right('.gjp-rows').replaceChildren(make('p', { class: 'gj-hint' }, NOTHING));
    right('.gjp-order').hidden = right('.gjp-legend').hidden = right('.gjp-known').hidden = true;
    curve('.gjp-said').hidden = true;
    curve().classList.remove('gjp-open', 'gjp-filled');
    act('file').value = act('model').value = '';
    edit.forget();
    say('Your picture was deleted.');
    const began = page.store?.settings.start === 'photo';
    page.photo = false;
    if (began) page.open({ start: null }); // what the first screen shows came from the picture
  }

  /** @type {Record<string, () => void>} */
  const ACTIONS = {
    ...camera,
    ...edit.actions,
    avatar: () => ask({ avatar: Math.floor(Math.random() * 1e9) }),
    astronaut: () => ask({ example: 'astronaut' }),
    forget: () => {
      crop.still(); // nothing more is asked of a picture that goes
      edit.still();
      request('forget');
    },
    studio: () => request('studio'),
    reset: () => {
      photo.box = null;
      ask();
    },
  };
  root.addEventListener('click', (event) => {
    const button = /** @type {Element} */ (event.target).closest('button[data-photo]');
    const name = /** @type {HTMLElement | null} */ (button)?.dataset.photo;
    if (name) ACTIONS[name]?.();
  });
  document.addEventListener('click', (event) => {
    if (/** @type {Element} */ (event.target).closest('.gjp-close')) curve().classList.remove('gjp-open');
  });
  act('file').addEventListener('change', (/** @type {any} */ event) => {
    send(event.target.files[0]);
    event.target.value = '';
  });
  act('model').addEventListener('change', (/** @type {any} */ event) => {
    Object.assign(photo, { box: null, face: 0, chosen: event.target.value || null, named: null });
    if (!photo.reply) return;
    if (!photo.chosen) photo.reply.model = null;
    ask();
  });
  const drop = find('.gjp-drop');
  drop.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    act('file').click();
  });
  for (const kind of /** @type {const} */ (['dragover', 'dragleave', 'drop'])) {
    root.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle('gjp-over', kind === 'dragover');
      if (kind === 'drop') send(event.dataTransfer?.files[0]);
    });
  }
  document.addEventListener('paste', (event) => {
    const file = [...(event.clipboardData?.files || [])][0];
    if (!file || document.body.dataset.screen !== 'photo') return;
    event.preventDefault();
    send(file);
  });
  new MutationObserver(() => {
    if (photo.theme === theme()) return;
    photo.theme = theme();
    drawCurve();
  }).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  page.photoScreen = photo;
  if (page.held_onPhoto) page.onPhoto(page.held_onPhoto);
}
