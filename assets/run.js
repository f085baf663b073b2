// @ts-check
// The run: what the page asks the server to compute, and what it does with the frames that come back.
import { randomName } from './base.js';
import { inAbout, watchRefusals } from './refusals.js';
import { letter, mention, model, page, say, server, store, writeAddress } from './store.js';

/** @typedef {import('./wire.js').Frame} Frame */

const SILENCE = 8000; // milliseconds without a frame after which a run is lost
const listeners = {
  /** @type {((frame: Frame) => void)[]} */ frame: [],
  /** @type {(() => void)[]} */ status: [],
  /** @type {(() => void)[]} */ anew: [],
};
/** @type {(() => void) | null} */
let finished = null; // called when the run that is being paused has handed over its last frame
let lastFrame = 0;
let changed = 0; // the order of the last letter that a run under way must read before it ends
let slept = false; // paused because nobody looked
let retry = 0; // a timer: the server was full
/** What was begun last: it is tried again when the server was full. @type {[string, object]} */
let last = ['run', {}];

/** @param {(frame: Frame) => void} listener */
export const onFrame = (listener) => listeners.frame.push(listener);
/** @param {() => void} listener */
export const onStatus = (listener) => listeners.status.push(listener);
/** Other chains are about to begin. @param {() => void} listener */
export const onAnew = (listener) => listeners.anew.push(listener);
const tell = () => {
  for (const listener of listeners.status) listener();
};

/**
 * One computing event at a time: a run, a step, half a step, keep-the-best, more like this, or back.
 * @param {string} action
 * @param {object} [more]
 */
export function begin(action, more = {}) {
  last = [action, more];
  store.run = randomName();
  store.playing = ['run', 'best', 'like'].includes(action);
  if (store.settings.pause && store.step >= store.settings.pause) store.settings.pause = 0;
  if (store.playing) store.status = 'queued';
  lastFrame = performance.now();
  clearTimeout(retry);
  say('');
  tell();
  server.trigger('run', { ...letter(), action, ...more });
}

const again = () => begin(...last);

/** A letter for the run that is under way; its answer is the badge. */
export function post() {
  tell();
  server.trigger('steer', letter());
}

/** Something changed for the run that is under way; where it ends before it hears of it, another takes it up. */
export function change() {
  post();
  changed = store.order;
}

/** Something changed: running chains change course, all others set out. */
export function walkOn() {
  store.settings.walk = '';
  if (store.playing && store.status === 'best') {
    act('run');
    return;
  }
  if (store.playing) change();
  else {
    begin('run');
    post();
  }
}

export function pause() {
  if (!store.playing) return Promise.resolve();
  store.playing = false;
  post();
  return new Promise((resolve) => {
    finished = () => resolve(undefined);
    setTimeout(resolve, 3000); // a run that is gone hands over nothing more
  });
}

/**
 * @param {string} action
 * @param {object} [more]
 */
export async function act(action, more) {
  await pause();
  begin(action, more);
  post();
}

/** New chains from the seed, but for the pictures in these places. @param {number[]} [locked] */
export function anew(locked = []) {
  Object.assign(store.settings, { walk: '', locked });
  Object.assign(store, { walk: '', why: '', chosenFrom: 0, step: 0, fresh: store.fresh + 1, state: null });
  for (const listener of listeners.anew) listener();
  writeAddress();
  walkOn();
}

export function newSeed() {
  store.settings.seed = Math.floor(Math.random() * 100000);
  anew(store.settings.locked);
}

/** Pictures like the one in this place; it stays there. @param {number} place */
export async function moreLike(place) {
  await pause();
  Object.assign(store.settings, { walk: '', locked: [], seed: Math.floor(Math.random() * 100000) });
  store.fresh += 1;
  for (const listener of listeners.anew) listener();
  begin('like', { place });
  post();
}

/**
 * Back to a state that was kept.
 * @param {number} state
 * @param {import('./wire.js').Settings} settings as they were then
 */
export async function goBack(state, settings) {
  await pause();
  store.settings = structuredClone(settings);
  store.fresh += 1;
  for (const listener of listeners.anew) listener();
  begin('back', { state });
  post();
}

/** The one large button: what is most likely wanted now. */
export function mainAction() {
  if (store.playing) return pause();
  if (store.status === 'full') return again();
  if (store.status === 'settled') return newSeed();
  return begin('run');
}

page.onFrame = (/** @type {Frame} */ frame) => {
  if (frame.run !== store.run) return;
  lastFrame = performance.now();
  if (frame.status === 'error') {
    store.playing = false;
    store.status = 'error';
    say(frame.message ?? '', 0);
    finished?.();
    tell();
    return;
  }
  const ended = ['paused', 'settled', 'resting'].includes(frame.status);
  store.status = frame.status;
  if (frame.fresh === store.fresh) receive(frame);
  if (ended && store.playing && frame.order < changed) {
    begin('run'); // it ended before it could read the last change
    return;
  }
  if (ended) {
    store.playing = false;
    finished?.();
    finished = null;
  }
  if (frame.status === 'resting' && store.settings.moving && !document.hidden) {
    begin('run'); // its share of time is spent; others had a chance, and it goes on
    return;
  }
  if (ended) mention(farewell(frame));
  tell();
};

/** @param {Frame} frame */
function farewell(frame) {
  if (frame.message) return frame.message;
  if (frame.status === 'settled') return `Done. Change an attribute, or get new ${model().noun}.`;
  return frame.status === 'resting' ? 'Paused, so that others get a turn.' : '';
}

/** @param {Frame} frame */
function receive(frame) {
  store.step = frame.step;
  if (frame.digest) {
    Object.assign(store, { walk: frame.walk, why: frame.why, chosenFrom: frame.best_of });
    Object.assign(store, { state: frame.state, states: frame.states });
    writeAddress();
  }
  for (const listener of listeners.frame) listener(frame);
  keepUp(frame);
}

// A slow screen or a slow line: when frames arrive late, ask for fewer of them; when there is room again, for more.
// The two clocks may differ, so lateness is counted from the quickest frame seen.
const pulse = { quickest: Number.POSITIVE_INFINITY, late: Number.POSITIVE_INFINITY, due: 0 };
/** @param {Frame} frame */
function keepUp(frame) {
  const took = Date.now() / 1000 - frame.at;
  const now = performance.now();
  pulse.quickest = Math.min(pulse.quickest, took);
  pulse.late = Math.min(pulse.late, took - pulse.quickest);
  if (now < pulse.due) return;
  const slower = Math.max(3, store.fps * 0.6);
  const wanted = pulse.late > 0.35 ? slower : pulse.late < 0.12 ? Math.min(18, store.fps * 1.3) : store.fps;
  if (Math.round(wanted) !== Math.round(store.fps) && store.playing) {
    store.fps = wanted;
    post();
  }
  Object.assign(pulse, { late: Number.POSITIVE_INFINITY, due: now + 1500 });
}

/** The server is full. @param {import('./refusals.js').Refusal} refusal */
function full({ event, text, words, seconds }) {
  const soon = inAbout(seconds);
  if (!store.models.length) {
    say(`${words} This page tries again by itself ${soon}.`, 0);
    retry = window.setTimeout(() => location.reload(), 1000 * seconds);
  } else if (event === 'run' || (!event && store.status === 'queued')) {
    if (store.playing) store.status = 'full';
    store.playing = false;
    tell();
    const what = store.status === 'full' ? 'Your pictures will start by themselves' : 'This will be done by itself';
    say(`${words} ${what} ${soon}.`, 0);
    retry = window.setTimeout(again, 1000 * seconds);
  } else if (event === 'steer') window.setTimeout(post, 1000 * seconds);
  else if (event) page.onRefusal(event, text, seconds);
}

function watchSilence() {
  if (!store.playing) return;
  const silent = performance.now() - lastFrame;
  if (store.status === 'queued' && silent > 2500)
    say('Waiting for a free place. Your pictures will start by themselves.', 4);
  else if (store.status !== 'queued' && silent > SILENCE) {
    store.playing = false;
    store.status = 'paused';
    say('The connection was lost. Press Resume to go on from where the pictures were.', 0);
    tell();
  }
}

/** A tab that nobody looks at does not compute. */
function watchVisitor() {
  let timer = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.hidden)
      timer = window.setTimeout(() => {
        if (!store.playing || store.status !== 'running') return;
        slept = true;
        pause();
      }, 15000);
    else if (slept) {
      slept = false;
      begin('run');
    }
  });
}

export function listenToRun() {
  watchRefusals(full);
  watchVisitor();
  setInterval(watchSilence, 1000);
}
