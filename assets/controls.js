// @ts-check
// Settings as fields made from the server's table, and what the screen says of its state.
import { make, setText } from './base.js';
import { buildChips, paintChips } from './chips.js';
import { closeDetail } from './detail.js';
import { paintEnds } from './ends.js';
import { anew, change, post } from './run.js';
import { fromShare, levelWords, toShare } from './scales.js';
import { askForRecipe } from './share.js';
import { buildShelf, settingsFor, shelfEvents } from './shelf.js';
import { refusal } from './state.js';
import {
  asked,
  attribute,
  find,
  findAll,
  inForce,
  model,
  page,
  rowOf,
  root,
  sane,
  say,
  sentence,
  store,
  writeAddress,
} from './store.js';

/** @typedef {import('./wire.js').Row} Row */
/** @typedef {import('./wire.js').Frame} Frame */

const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 0]; // steps per second; 0 is as fast as it goes
const LIFT = { low: 0.5, high: 20 }; // noise levels: below, nothing changes; above, nothing stays
const LOWEST = 0.02; // noise level at the left end of the gauge
/** @type {Record<string, string>} */
const WORDS = {
  none: 'One grid',
  samplers: 'Two samplers',
  models: 'Two models',
  conditional: 'A blur of what you ask for',
  informed: 'A blur of the data',
  noise: 'Pure noise',
  uniform: 'Uniform noise',
  'buffer-match': 'A training sample that fits',
  'buffer-any': 'Any training sample',
  photo: 'Your photo',
  marginalizing: 'Marginalizing',
  resampling: 'Resampling',
  ancestral: 'With fresh noise',
  deterministic: 'Without fresh noise',
};
const STATES = {
  waiting: 'starting',
  queued: 'waiting',
  running: 'running',
  paused: 'paused',
  settled: 'done',
  resting: 'resting',
  best: 'choosing',
  error: 'stopped',
  full: 'waiting',
};

/** Fields appear where the table says, for models that have them. */
export function buildFields() {
  const kind = model().levels ? 'noise levels' : 'no noise levels';
  for (const place of ['compare', 'settings']) {
    const rows = store.table.filter((row) => row.place === place && (!row.only || row.only === kind));
    find(`[data-fields=${place}]`).replaceChildren(...rows.map(field));
  }
  for (const node of findAll('.gj-levels')) node.hidden = !model().levels;
  paintFields();
}

/** @type {(row: Row) => [string, string][]} */
function choicesOf(row) {
  const byName = (/** @type {string} */ name) => store.models.find((one) => one.name === name);
  if (row.key === 'model') return model().family.map((name) => [name, `${name}: ${byName(name)?.kind}`]);
  if (row.key === 'beside') return model().rivals.map((name) => [name, `${name}: ${byName(name)?.kind}`]);
  const known = row.key === 'start' ? row.choices.filter((one) => model().starts.includes(one)) : row.choices;
  return known.map((choice) => [choice, WORDS[choice] ?? choice]);
}

/** @param {Row} row */
function field(row) {
  const { key } = row;
  const number = { type: 'number', min: row.low, max: row.high, step: row.kind === 'whole' ? 1 : 'any' };
  const input =
    row.kind === 'choice'
      ? make('select', { 'data-key': key }, ...choicesOf(row).map(([value, text]) => make('option', { value }, text)))
      : make('input', { 'data-key': key, ...number, inputmode: 'decimal' });
  input.addEventListener('change', () => changeField(row, input));
  const help = row.help ? make('small', {}, row.help) : null;
  return make('label', {}, make('span', {}, row.label), input, help);
}

export function paintFields() {
  for (const input of findAll('[data-key]')) {
    const { key } = input.dataset;
    const row = rowOf(key);
    const select = input.tagName === 'SELECT';
    if (document.activeElement !== input || select) input.value = (select ? inForce(key) : store.settings[key]) ?? '';
    if (row.own && !select) input.placeholder = String(+Number(model().sampling[key] ?? 0).toPrecision(3));
  }
  /** @type {(key: string, choice: string, yes: boolean) => void} */
  const allow = (key, choice, yes) => {
    const option = find(`[data-key=${key}] option[value=${choice}]`);
    if (option) option.disabled = !yes;
  };
  allow('compare', 'models', model().rivals.length > 0);
  allow('start', 'photo', Boolean(page.photo) || store.settings.start === 'photo');
  const beside = find('[data-key=beside]');
  beside.parentElement.hidden = store.settings.compare !== 'models';
  if (!beside.value) beside.value = model().rivals[0] ?? ''; // the server's choice where the visitor made none
  find('[data-key=sampler]').disabled = store.settings.compare === 'samplers';
  const { speed } = store.settings;
  find('.gj-speed input').value = SPEEDS.includes(speed) ? SPEEDS.indexOf(speed) : 5;
  setText(find('.gj-speed output'), speed ? `${speed} steps/s` : 'max');
  paintLift();
  paintView();
}

function paintLift() {
  if (!model().levels) return;
  const share = toShare(inForce('lift'), LIFT.low, LIFT.high);
  find('.gj-lift input').value = share;
  setText(find('.gj-lift output'), liftWords(share));
}
/** @param {number} share */
function liftWords(share) {
  return ['a little', 'some', 'a lot', 'almost everything', 'everything'][Math.min(4, Math.floor(share * 5))];
}

/** @type {(row: Row, input: HTMLInputElement | HTMLSelectElement) => void} */
function changeField(row, input) {
  if (row.key === 'model') {
    changeModel(input.value, true);
    return;
  }
  const value = input.value === '' && row.own ? null : sane(row, input.value);
  const range = refusal(row, input.value);
  if (value === undefined) {
    paintFields();
    say(range);
    return;
  }
  const limited = typeof value === 'number' && Number(input.value) !== value;
  store.settings[row.key] = value;
  input.value = value ?? '';
  settingsChanged(row);
  if (limited) say(range, 12);
}

/** @type {(name: string, keep: boolean) => void} */
export function changeModel(name, keep) {
  store.settings = settingsFor(name, keep);
  rebuild();
  anew();
}
shelfEvents.choose = (name) => changeModel(name, false);

let built = ''; // the model that the page was built for
/** Everything on the page that depends on the model. */
export function rebuild() {
  built = model().name;
  closeDetail();
  buildShelf();
  buildChips();
  buildFields();
  paintEnds();
  paintCredit();
  const noun = { faces: 'face', shoes: 'shoe' }[model().noun] ?? 'picture';
  for (const node of findAll('.gj-noun')) setText(node, noun);
}

/** Settings that came as a whole: from another screen, or from an earlier state. */
export function settingsReplaced() {
  if (built !== model().name) rebuild();
  paintChips();
  paintFields();
  writeAddress();
}

/** Chains on their way take up what they can; those that have arrived begin anew, or nothing would be seen of it. @param {Row} row */
function settingsChanged(row) {
  paintFields();
  writeAddress();
  if (row.restarts || (row.own && !store.playing)) anew();
  else if (store.playing) change();
}

function paintCredit() {
  const { title, size, credit } = model();
  const where = store.device === 'cpu' ? 'CPU' : store.device;
  setText(find('.gj-credit'), `${title}, ${size} × ${size} pixels, on ${where}. ${credit}`.trim());
}

export function paintStatus() {
  const { status, playing, settings } = store;
  root.dataset.status = status;
  setText(find('.gj-state'), /** @type {Record<string, string>} */ (STATES)[status] ?? status);
  const main = playing
    ? status === 'best'
      ? 'Stop'
      : 'Pause'
    : status === 'settled'
      ? `New ${model().noun}`
      : 'Resume';
  for (const button of findAll('[data-do=main]')) setText(button, main);
  find('[data-do=moving]').setAttribute('aria-pressed', String(Boolean(settings.moving)));
  for (const name of ['step', 'labels', 'langevin'])
    find(`[data-do=${name}]`).disabled = status === 'settled' && name === 'step';
  paintAsked();
}

function paintAsked() {
  const box = find('.gj-asked');
  const text = sentence();
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  if (!text) {
    box.replaceChildren('No attributes chosen; anything goes.');
    return;
  }
  const words = asked().flatMap(({ name, wanted }, j) => {
    const glue =
      j === 0 ? '' : wanted || j > store.settings.with.length ? ', ' : store.settings.with.length ? '; ' : '';
    const style = `--c: var(--gj-series-${(j % 8) + 1})`;
    return [glue, make('b', { style }, wanted ? attribute(name).yes : attribute(name).no)];
  });
  box.replaceChildren('Showing: ', ...words);
}

/** @param {Frame} frame */
export function paintProgress(frame) {
  const box = find('.gj-progress');
  const share = frame.progress ? frame.progress[0] / frame.progress[1] : 0;
  box.classList.toggle('gj-on', Boolean(frame.progress));
  box.firstElementChild.style.transform = `scaleX(${share.toFixed(3)})`;
  box.setAttribute('aria-valuenow', Math.round(100 * share));
  const gauge = find('.gj-gauge');
  const highest = Math.max(LIFT.high, frame.level, ...['start_level', 'wander_level'].map(inForce));
  gauge.querySelector('b').style.transform = `scaleX(${toShare(frame.level, LOWEST, highest).toFixed(3)})`;
  gauge.setAttribute('aria-valuemax', String(highest));
  setText(gauge.querySelector('output'), levelWords(frame.level));
  gauge.setAttribute('aria-valuenow', String(frame.level));
  setText(find('.gj-step'), `step ${frame.step.toLocaleString('en')}`);
  const replay = frame.left > 1 ? `${frame.left - 1} more ${frame.left === 2 ? 'change' : 'changes'}` : '';
  const rate = frame.status === 'running' && frame.rate ? `${Math.round(frame.rate)} steps/s` : '';
  setText(find('.gj-rate'), replay || rate);
}

function paintView() {
  for (const button of findAll('[data-view]'))
    button.setAttribute('aria-pressed', String(button.dataset.view === store.settings.view));
}

export function listenToControls() {
  find('.gj-speed input').addEventListener('input', (/** @type {any} */ event) => {
    store.settings.speed = SPEEDS[event.target.value];
    paintFields();
    writeAddress();
    if (store.playing) post();
  });
  const lift = find('.gj-lift input');
  lift.addEventListener('input', () => setText(find('.gj-lift output'), liftWords(Number(lift.value))));
  lift.addEventListener('change', () => {
    store.settings.lift = +fromShare(Number(lift.value), LIFT.low, LIFT.high).toPrecision(3);
    // Changes that were made asked for the old value: with the new one a link would lead elsewhere.
    if (store.walk.includes(';')) Object.assign(store, { walk: '', why: 'settings changed on the way' });
    writeAddress();
    askForRecipe();
    if (store.playing) post();
  });
}
