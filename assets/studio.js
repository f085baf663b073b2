// The screen put together: the run, the letters to the server, what comes back.
const page = (window.gibbsJem ??= {});
let finished = null; // called when the run that is being paused has handed over its last frame
let lastFrame = 0;

// One computing event at a time: a run, a step, half a step, or keep-the-best.
function begin(action) {
  store.run = randomName();
  store.playing = action === 'run' || action === 'best';
  if (action === 'run' && store.settings.steps && store.step >= store.settings.steps) store.settings.steps = 0;
  store.status = store.playing ? 'queued' : store.status;
  lastFrame = performance.now();
  paintStatus();
  trigger('run', { ...letter(), action });
}

const post = () => { paintStatus(); trigger('steer', letter()); };

// A new wish: running chains change course, resting ones set out again, paused ones wait for Run.
function walkOn() {
  if (store.status === 'resting') begin('run');
  post();
}

function pause() {
  if (!store.playing) return Promise.resolve();
  store.playing = false;
  post();
  return new Promise((resolve) => {
    finished = resolve;
    setTimeout(resolve, 3000); // a run that is gone hands over nothing more
  });
}

async function act(action) {
  await pause();
  begin(action);
}

// New chains from the seed: a running screen goes on running, a paused one shows where they start.
function reset() {
  store.fresh += 1;
  store.step = 0;
  forgetTraces();
  if (store.status === 'resting' || (store.playing && store.status === 'running')) walkOn();
  else { post(); if (store.status === 'best') act('run'); else begin('look'); }
}

page.onFrame = (frame) => {
  if (frame.run !== store.run) return;
  lastFrame = performance.now();
  if (frame.status === 'error') {
    store.playing = false;
    store.status = 'error';
    say(frame.message, 0);
    finished?.();
    paintStatus();
    return;
  }
  if (frame.fresh === store.fresh) receive(frame);
  if (frame.message) say(frame.message);
  const ended = frame.status === 'paused' || frame.status === 'resting';
  store.status = frame.status;
  if (ended) { store.playing = false; finished?.(); finished = null; }
  paintProgress(frame.status === 'best' ? frame.progress : null);
  paintStatus();
};

function receive(frame) {
  find('.gj-wait').hidden = true;
  store.step = frame.step;
  store.steered = frame.steered;
  const means = remember(frame);
  setText(find('.gj-step'), 'step ' + frame.step.toLocaleString('en'));
  setText(find('.gj-rate'), frame.status === 'running' && frame.rate ? Math.round(frame.rate) + ' steps/s' : '');
  canvas.dataset.step = frame.step;
  if (frame.digest) canvas.dataset.digest = frame.digest; else delete canvas.dataset.digest;
  canvas.setAttribute('aria-label', frame.lanes.length * frame.lanes[0].n + ' chains, ' + (sentence() || 'nothing asked'));
  showFrame(frame).then(() => { if (detail.open) paintDetail(Boolean(frame.digest)); });
  if (means[0] && performance.now() >= plotDue) paintSureness(means[0]);
  paintPlots(performance.now(), Boolean(frame.digest));
  keepUp(frame);
}

// A slow screen or a slow line: when frames arrive late, ask for fewer of them; when there is room again, for more.
// The two clocks may differ, so lateness is counted from the quickest frame seen.
const pulse = { quickest: Infinity, late: Infinity, due: 0 };
function keepUp(frame) {
  const took = Date.now() / 1000 - frame.at, now = performance.now();
  pulse.quickest = Math.min(pulse.quickest, took);
  pulse.late = Math.min(pulse.late, took - pulse.quickest);
  if (now < pulse.due) return;
  const wanted = pulse.late > 0.35 ? Math.max(3, store.fps * 0.6) : pulse.late < 0.12 ? Math.min(18, store.fps * 1.3) : store.fps;
  if (Math.round(wanted) !== Math.round(store.fps) && store.playing) { store.fps = wanted; post(); }
  Object.assign(pulse, { late: Infinity, due: now + 1500 });
}

page.onReply = (reply) => {
  if (reply.kind === 'hello') { welcome(reply); return; }
  if (reply.kind === 'refused') { say(reply.message); return; }
  if (reply.kind === 'surprise') { setWishes(reply); return; }
  if (reply.kind === 'film') { download(reply.src, fileName(reply.format)); findAll('[data-take]').forEach((one) => { one.disabled = false; }); return; }
  if (reply.kind !== 'steered' || reply.order !== store.order) return; // an answer to an older wish
  paintBadge(reply.badge);
  setText(find('.gj-temperature'), reply.temperature);
  for (const kind of ['python', 'command']) setText(find('[data-code=' + kind + ']'), reply[kind]);
};

function welcome(hello) {
  if (store.models.length) return;
  Object.assign(store, { table: hello.table, models: hello.models, device: hello.device, bestOf: hello.limits.best_of });
  if (!store.models.length) { say('No model has arrived yet; reload the page in a moment.', 0); return; }
  readAddress();
  readColours();
  buildChips();
  buildFields();
  paintCredit();
  writeAddress();
  begin('run');
  post();
}

const DO = {
  toggle: () => (store.playing ? pause() : begin('run')),
  step: () => act('step'),
  labels: () => act('labels'),
  langevin: () => act('langevin'),
  best: () => act('best'),
  reset,
  clear: () => setWishes({}),
  surprise: () => trigger('surprise', { model: store.settings.model }),
  dice: () => { store.settings.seed = Math.floor(Math.random() * 100000); settingsChanged(true); },
};
const TAKE = {
  png: savePicture,
  gif: () => trigger('film', { format: 'gif' }),
  webp: () => trigger('film', { format: 'webp' }),
  link: (button) => copy(shareLink(), button),
};

root.addEventListener('click', (event) => {
  const button = event.target.closest('[data-do],[data-take],[data-copy]');
  if (!button) return;
  if (button.dataset.do) DO[button.dataset.do](button);
  if (button.dataset.take) TAKE[button.dataset.take](button);
  if (button.dataset.copy) copy(find('[data-code=' + button.dataset.copy + ']').textContent, button);
});
find('.gj-message button').addEventListener('click', () => say(''));
find('.gj-speed input').addEventListener('input', (event) => {
  store.settings.speed = SPEEDS[event.target.value];
  paintSpeed(); writeAddress(); post();
});
find('.gj-take').addEventListener('toggle', () => post()); // the recipes name the step of now
listenToChips();
listenToDetail();

new ResizeObserver(() => { paintGrid(); paintPlots(0, true); paintDetail(true); }).observe(find('.gj-main'));
new MutationObserver(() => { readColours(); paintGrid(); paintPlots(0, true); paintDetail(true); }).observe(document.body, { attributes: true, attributeFilter: ['class'] });

// A run that says nothing: it waits for a place, or the connection is gone.
setInterval(async () => {
  if (!store.playing || performance.now() - lastFrame < 2500) return;
  if (store.status === 'queued') {
    const config = window.gradio_config || {};
    const status = await fetch((config.root || '') + (config.api_prefix || '/gradio_api') + '/queue/status').then((answer) => answer.json()).catch(() => null);
    if (status && store.status === 'queued') say('All places are taken; ' + (status.queue_size || 1) + ' waiting. Your chains start as soon as one is free.', 4);
  } else if (performance.now() - lastFrame > 8000) {
    store.playing = false; store.status = 'paused';
    say('The connection to the chains was lost. Run goes on from where they were.', 0);
    paintStatus();
  }
}, 1000);

// A tab that nobody looks at does not compute.
let leftAt = 0;
document.addEventListener('visibilitychange', () => {
  if (document.hidden) leftAt = setTimeout(() => { if (store.playing && store.status === 'running') { page.slept = true; pause(); } }, 15000);
  else { clearTimeout(leftAt); if (page.slept) { page.slept = false; begin('run'); } }
});

// What other screens and the tests may use.
Object.assign(page, { store, counters, shareLink, history: history_, detail, shown: () => shown?.frame, open: (values) => { Object.assign(store.settings, values); settingsChanged(true); buildChips(); } });

if (page.held_onReply) page.onReply(page.held_onReply);
