// Settings as fields made from the server's table, and what the buttons do.
const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 0]; // steps a second; 0 is flat out
const WORDS = {
  none: 'One grid', samplers: 'Two samplers', models: 'Two models',
  conditional: 'Conditional noise', informed: 'Informed noise', uniform: 'Uniform noise',
  'buffer-match': 'Matching buffer sample', 'buffer-any': 'Any buffer sample', photo: 'Your photo',
  marginalizing: 'Marginalizing', resampling: 'Resampling',
};
const HELP = {
  compare: 'From the same noise, under the same wish, step by step',
  sampler: 'Marginalizing sums the free labels out, resampling draws them at every step',
  start: 'Conditional: a blur that leans to what you ask. Informed: a blur of all data. Uniform: the paper’s noise',
  seed: 'The same seed gives the same chains',
  variety: 'How far apart the chains begin; less is cleaner and more alike',
  guidance: 'Weight on what you ask for; 1 is the paper',
  steps: 'The run pauses by itself here; 0 never',
  rest: 'Steps under one wish before the chains rest; 0 never',
  grad_coef: 'Multiplies the gradient', noise_std: 'Standard deviation of the noise',
  grad_clamp: 'Bound on each element of the gradient; 0 is none',
  preconditioner: 'Strength of the covariance preconditioner; 0 is off',
  steps_per_sweep: 'Langevin steps for each draw of the labels',
  augment_every: 'Light blur at every n-th step; 0 never',
};
const MAIN = ['model', 'compare', 'chains', 'seed', 'sampler', 'start', 'variety', 'guidance'];
const ADVANCED = ['grad_coef', 'noise_std', 'preconditioner', 'steps_per_sweep', 'augment_every', 'grad_clamp', 'rest', 'steps'];

function buildFields() {
  for (const [place, keys] of [['main', MAIN], ['advanced', ADVANCED]]) {
    find('[data-fields=' + place + ']').replaceChildren(...keys.map(field));
  }
  paintFields();
}

function field(key) {
  const row = rowOf(key);
  let input;
  if (row.kind === 'choice') {
    const choices = key === 'model' ? store.models.map((one) => [one.name, one.title]) : row.choices.map((choice) => [choice, WORDS[choice] || choice]);
    input = make('select', { 'data-key': key }, ...choices.map(([value, text]) => make('option', { value }, text)));
  } else {
    input = make('input', { 'data-key': key, type: 'number', min: row.low, max: row.high, step: row.kind === 'whole' ? 1 : 'any', inputmode: 'decimal' });
  }
  input.addEventListener('change', () => changeField(row, input));
  const dice = key === 'seed' ? make('button', { type: 'button', 'data-do': 'dice', title: 'Another seed' }, 'New') : null;
  return make('label', { title: HELP[key] || '' }, make('span', {}, row.label), make('span', { class: 'gj-input' }, input, dice), HELP[key] ? make('small', {}, HELP[key]) : null);
}

function paintFields() {
  for (const input of findAll('[data-key]')) {
    const key = input.dataset.key, value = store.settings[key];
    if (document.activeElement !== input || input.tagName === 'SELECT') input.value = value ?? '';
    if (rowOf(key).own) input.placeholder = String(+Number(model().sampling[key] ?? 0).toPrecision(3));
  }
  const allow = (key, choice, yes) => { const option = find('[data-key=' + key + '] option[value=' + choice + ']'); if (option) option.disabled = !yes; };
  allow('compare', 'models', Boolean(model().rival));
  allow('start', 'photo', Boolean(window.gibbsJem.photo) || store.settings.start === 'photo');
  const sampler = find('[data-key=sampler]');
  sampler.disabled = store.settings.compare === 'samplers';
  const speed = find('.gj-speed input');
  speed.value = SPEEDS.includes(store.settings.speed) ? SPEEDS.indexOf(store.settings.speed) : 5;
  paintSpeed();
}

function paintSpeed() {
  const { speed } = store.settings;
  setText(find('.gj-speed output'), speed ? speed + ' steps/s' : 'flat out');
}

function changeField(row, input) {
  if (row.key === 'model') { changeModel(input.value); return; }
  const value = input.value === '' && row.own ? null : sane(row, input.value);
  if (value === undefined) { paintFields(); say(row.label + ' takes a number from ' + row.low + ' to ' + row.high + '.'); return; }
  store.settings[row.key] = value;
  input.value = value ?? '';
  settingsChanged(row.restarts);
}

function changeModel(name) {
  const before = store.settings;
  store.settings = { ...defaults(name), chains: before.chains, seed: before.seed, speed: before.speed, sampler: before.sampler };
  const known = (list) => list.filter((one) => model().names.includes(one));
  Object.assign(store.settings, { with: known(before.with), without: known(before.without) });
  if (!asked().length && model().presets.length) Object.assign(store.settings, structuredClone(model().presets[0].values));
  if (detail.open) closeDetail();
  buildChips();
  settingsChanged(true);
}

function settingsChanged(restarts) {
  paintFields();
  paintCredit();
  writeAddress();
  if (restarts) reset(); else walkOn();
}

function paintCredit() {
  setText(find('.gj-credit'), [model().title + ', ' + model().size + ' × ' + model().size + ' pixels, on ' + (store.device === 'cpu' ? 'CPU' : store.device) + '.', model().credit].filter(Boolean).join(' '));
}

function paintStatus() {
  const { status, playing } = store;
  root.dataset.status = status;
  const words = { waiting: 'starting', queued: 'waiting', running: 'running', paused: 'paused', resting: 'resting', best: 'choosing', error: 'stopped' };
  setText(find('.gj-state'), words[status] || status);
  setText(find('[data-do=toggle]'), playing ? 'Pause' : status === 'resting' ? 'Continue' : 'Run');
  const text = sentence();
  if (find('.gj-asked').dataset.text === text) return;
  find('.gj-asked').dataset.text = text;
  find('.gj-asked').replaceChildren('You ask for ', ...(asked().length ? askedWords() : [make('b', {}, 'nothing in particular')]));
}

const wordsFor = (names) => names.map((name) => labelOf(name).toLowerCase());
const joint = (i, n, word) => (i === 0 ? '' : i === n - 1 ? ' ' + word + ' ' : ', ');

// "smiling and eyeglasses, not male": as text, and with each word underlined in the colour of its bar and line.
function sentence() {
  const join = (words, word) => words.map((one, i) => joint(i, words.length, word) + one).join('');
  const { with: yes, without: no } = store.settings;
  return [join(wordsFor(yes), 'and'), no.length ? 'not ' + join(wordsFor(no), 'or') : ''].filter(Boolean).join(', ');
}

function askedWords() {
  const { with: yes, without: no } = store.settings;
  const word = (text, j) => make('b', { style: '--c: var(--gj-series-' + ((j % 6) + 1) + ')' }, text);
  const list = (names, glue, from) => wordsFor(names).flatMap((text, i) => [joint(i, names.length, glue), word(text, from + i)]);
  return [...list(yes, 'and', 0), no.length ? (yes.length ? ', not ' : 'not ') : '', ...list(no, 'or', yes.length)];
}

function paintProgress(progress) {
  const box = find('.gj-progress');
  const share = progress ? progress[0] / progress[1] : 0;
  box.classList.toggle('gj-on', Boolean(progress));
  box.firstElementChild.style.transform = 'scaleX(' + share.toFixed(3) + ')';
  box.setAttribute('aria-valuenow', Math.round(100 * share));
}

// PNG of what is on the canvas, on the page's own background, with what was asked below.
function savePicture() {
  if (!shown) return;
  const pad = 16, bar = 30, scale = canvas.width / layout.width;
  const sheet = document.createElement('canvas');
  sheet.width = (layout.width + 2 * pad) * scale; sheet.height = (layout.height + 2 * pad + bar) * scale;
  const context = sheet.getContext('2d');
  context.fillStyle = colours.card; context.fillRect(0, 0, sheet.width, sheet.height);
  context.drawImage(canvas, pad * scale, pad * scale);
  context.font = 14 * scale + 'px system-ui, sans-serif'; context.fillStyle = colours.ink; context.textBaseline = 'middle';
  context.fillText((sentence() || 'nothing in particular') + ', step ' + shown.frame.step, pad * scale, sheet.height - (pad + bar / 2 - 6) * scale, layout.width * scale);
  sheet.toBlob((blob) => { const uri = URL.createObjectURL(blob); download(uri, fileName('png')); setTimeout(() => URL.revokeObjectURL(uri), 5000); });
}
const fileName = (ending) => 'gibbs-jem-' + (sentence() || 'anything').replace(/[^a-z0-9]+/gi, '-').slice(0, 60) + '-' + store.step + '.' + ending;

async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make('textarea', { style: 'position:fixed;opacity:0' }); area.value = text; document.body.append(area); area.select();
    document.execCommand('copy'); area.remove();
  }
  const before = button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = before; }, 1200);
}

// The link carries the step, so that it stops where the copier stood; chains that were steered cannot be told in a link.
function shareLink() {
  const same = !store.steered && store.step > 0;
  setText(find('.gj-link-note'), same
    ? 'The link runs the same chains to step ' + store.step + ' and pauses there.'
    : 'The link restores everything; the chains start from their seed with what is asked now.');
  return location.origin + addressOf(store.settings, same ? { steps: store.step } : {});
}
