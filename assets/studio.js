// @ts-check
// The first screen put together.
import { readColours, setText, touch } from './base.js';
import { buildChips, listenToChips, paintBadge, paintSureness, setChoices } from './chips.js';
import { listenToControls, paintProgress, paintStatus, rebuild, settingsReplaced } from './controls.js';
import { detail, listenToDetail, paintDetail } from './detail.js';
import { drawPath, endHere, refusePath, savePath, showPath } from './ends.js';
import { canvas, counters, onPainted, onScreen, paintGrid, showFrame } from './grid.js';
import { welcomeNewcomers } from './hints.js';
import { lookUnderTheHood, refuseHood, showHood } from './hood.js';
import { watchGrid } from './mini.js';
import { paintPlots, past, plotsDue, remember } from './plots.js';
import { act, anew, begin, change, listenToRun, mainAction, onAnew, onFrame, onStatus, pause, post } from './run.js';
import { askForFilm, askForRecipe, copy, releaseFilm, savePicture, shareLink, showFilm, showRecipe } from './share.js';
import { sameChoices } from './state.js';
import { find, model, openAddress, page, root, say, sentence, server, store, writeAddress } from './store.js';
import { listenToTiles, paintLocks } from './tiles.js';
import { noteState, paintStates, undo } from './undo.js';

/** @typedef {import('./wire.js').Frame} Frame */

/** @type {Record<string, (button: HTMLElement) => unknown>} */
const DO = {
  main: mainAction,
  moving: keepMoving,
  reset: () => anew(),
  best: keepTheBest,
  step: () => act('step'),
  labels: () => act('labels'),
  langevin: () => act('langevin'),
  clear: () => setChoices({}),
  surprise: () => server.trigger('surprise', { model: store.settings.model }),
  undo,
  hood: () => lookUnderTheHood(false),
  six: () => lookUnderTheHood(true),
  path: drawPath,
  'end-a': () => endHere('a'),
  'end-b': () => endHere('b'),
};
/** @type {Record<string, (button: HTMLElement) => unknown>} */
const TAKE = {
  png: savePicture,
  gif: () => askForFilm('gif'),
  webp: () => askForFilm('webp'),
  path: savePath,
  link: (button) => copy(shareLink(), button),
};
/** Answers of the server, by their kind. @type {Record<string, (reply: any) => void>} */
const REPLY = {
  hello: welcome,
  surprise: setChoices,
  film: showFilm,
  recipe: showRecipe,
  path: showPath,
  hood: showHood,
  steered: (reply) => {
    const here = reply.asked.model === store.settings.model && sameChoices(reply.asked, store.settings);
    if (here) paintBadge(reply.badge); // not of an older combination
  },
  refused: (reply) => {
    if (reply.about === 'film') releaseFilm();
    if (reply.about === 'path') refusePath();
    if (reply.about === 'hood') refuseHood();
    say(reply.message, 12);
  },
};

/** The server was too full to take a request; what is small is asked again. @type {(about: string, message: string, seconds: number) => void} */
function refused(about, message, seconds) {
  const screen = document.body.dataset.screen;
  if (about === 'recipe') setTimeout(askForRecipe, 1000 * seconds);
  else if (screen === 'photo') page.onPhoto({ kind: 'refused', message, order: page.photoScreen.order });
  else if (screen === 'compare') page.onCompare({ kind: 'refused', message });
  else REPLY.refused({ about, message });
}

function keepMoving() {
  store.settings.moving = store.settings.moving ? 0 : 1;
  writeAddress();
  if (store.playing) change();
  else if (store.settings.moving) begin('run');
  paintStatus();
}

async function keepTheBest() {
  await act('best');
  const n = store.settings.chains;
  say(`Drawing ${n * store.bestOf} pictures to keep the best ${n}.`, 0);
}

/** @param {string} view */
function changeView(view) {
  store.settings.view = view;
  for (const button of root.querySelectorAll('[data-view]'))
    button.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (button).dataset.view === view));
  writeAddress();
  if (store.playing) change();
  else begin('show');
}

/** @param {Frame} frame */
function receive(frame) {
  find('.gj-wait').hidden = true;
  const other = frame.epoch !== store.epoch;
  store.epoch = frame.epoch;
  const means = remember(frame);
  canvas.setAttribute('aria-label', `${frame.lanes.length * frame.lanes[0].n} pictures: ${sentence() || 'anything'}`);
  paintProgress(frame);
  showFrame(frame);
  if (means && (plotsDue() || frame.digest)) paintSureness(means);
  paintPlots(Boolean(frame.digest) || other);
}

function painted() {
  const frame = onScreen()?.frame;
  if (detail.open) paintDetail(Boolean(frame?.digest));
  if (!frame?.digest) return;
  noteState();
  askForRecipe();
}

/** @param {any} hello */
function welcome(hello) {
  if (store.models.length) return;
  Object.assign(store, {
    table: hello.table,
    models: hello.models,
    device: hello.device,
    bestOf: hello.limits.best_of,
  });
  if (!store.models.length) {
    say('No model has arrived yet; reload the page in a moment.', 0);
    return;
  }
  const words = openAddress();
  readColours(root);
  rebuild();
  writeAddress();
  begin('run');
  post();
  if (words) say(words, 15);
  else if (store.settings.walk) say('This link repeats the same changes, one after another.', 6);
  welcomeNewcomers();
}

function listen() {
  root.addEventListener('click', (event) => {
    const found = /** @type {Element} */ (event.target).closest('[data-do],[data-take],[data-copy],[data-view]');
    const button = /** @type {HTMLElement | null} */ (found);
    if (!button) return;
    const { do: what, take, copy: code, view } = button.dataset;
    if (what) DO[what](button);
    if (take) TAKE[take](button);
    if (code) copy(find(`[data-code=${code}]`).textContent, button);
    if (view) changeView(view);
  });
  if (touch()) setText(find('.gj-click'), 'Tap');
  find('.gj-take').addEventListener('toggle', askForRecipe);
  const repaint = () => {
    paintGrid();
    paintPlots(true);
    paintDetail(true);
  };
  new ResizeObserver(repaint).observe(find('.gj-main'));
  new MutationObserver(() => {
    readColours(root);
    repaint();
  }).observe(document.body, { attributes: true, attributeFilter: ['class'] });
}

/** @param {import('./base.js').Component} component */
export function mount({ trigger }) {
  server.trigger = trigger;
  onFrame(receive);
  onPainted(painted);
  onStatus(paintStatus);
  onStatus(paintStates);
  onAnew(() => {
    settingsReplaced();
    paintLocks();
  });
  listen();
  listenToRun();
  listenToChips();
  listenToControls();
  listenToDetail();
  listenToTiles();
  watchGrid();
  page.onRefusal = refused;
  page.onReply = (/** @type {any} */ reply) => REPLY[reply.kind]?.(reply);
  // What other screens and the tests may use.
  Object.assign(page, { store, counters, shareLink, history: past, detail, model, pause, begin, writeAddress });
  page.shown = () => onScreen()?.frame;
  page.open = (/** @type {object} */ values) => {
    Object.assign(store.settings, { strengths: {}, beside: null, moving: 0 }, values);
    rebuild();
    buildChips();
    anew();
  };
  if (page.held_onReply) page.onReply(page.held_onReply);
}
