// The second screen: a picture goes to the server, what the model says of it comes back.
const page = (window.gibbsJem ??= {});
const right = () => document.querySelector('#gj-photo-rows .gjp-right'); // mounted after this script has run
const photo = { models: [], order: Date.now(), reply: null, attribute: null, box: null, face: 0, theme: '', limit: 0 };
const act = (name) => find('[data-photo=' + name + ']');
const theme = () => (document.body.classList.contains('dark') ? 'dark' : 'light');
const asPercent = (p) => (100 * p < 1 && p > 0 ? '< 1 %' : 100 * p > 99 && p < 1 ? '> 99 %' : percent(p));

page.onPhoto = (reply) => {
  if (reply.kind === 'hello') return welcome(reply);
  if (reply.order !== photo.order) return;
  root.dataset.busy = '';
  if (reply.kind === 'refused') return say(reply.message, 0);
  if (reply.kind === 'forgotten') return forgotten();
  if (reply.kind === 'edit') return startEditing(reply);
  if (reply.kind === 'photo') show(reply);
};

function welcome(hello) {
  Object.assign(photo, { models: hello.models, limit: hello.bytes });
  act('model').replaceChildren(...hello.models.map((one) => make('option', { value: one.name }, one.title)));
  const named = new URLSearchParams(location.search).get('model'); // a link may name the model
  if (hello.models.some((one) => one.name === named)) act('model').value = named;
  setText(find('.gjp-kept'), hello.kept);
  act('avatar').hidden = !hello.avatars;
  readColours();
  drawCurve();
}

// Ask for a prediction; `source` is a new picture, otherwise the present one in another crop or under another model.
function ask(source = {}) {
  if (Object.keys(source).length) Object.assign(photo, { box: null, face: 0, sent: performance.now() });
  photo.order += 1;
  root.dataset.busy = 'yes';
  say('');
  trigger('show', { order: photo.order, model: act('model').value, face: photo.face, box: photo.box, attribute: photo.attribute, theme: theme(), ...source });
}

function send(file) {
  if (!file) return;
  if (file.size > photo.limit) { say('The picture has ' + Math.round(file.size / 2 ** 20) + ' MB; at most ' + Math.round(photo.limit / 2 ** 20) + ' MB are taken.', 0); return; }
  const reader = new FileReader();
  reader.onload = () => ask({ data: String(reader.result).split(',')[1] || '' });
  reader.onerror = () => say('The picture could not be read.', 0);
  reader.readAsDataURL(file);
}

function show(reply) {
  photo.reply = reply;
  photo.attribute = reply.attribute;
  photo.face = reply.face ?? 0;
  find('.gjp-shown').hidden = find('.gjp-said').hidden = act('forget').hidden = false;
  if (reply.picture) find('.gjp-whole img').src = reply.picture;
  find('.gjp-crop').src = reply.crop;
  placeBox(reply.box, true);
  setText(find('.gjp-note'), reply.note);
  find('.gjp-note').hidden = !reply.note;
  const faces = reply.faces.length > 1 ? reply.faces.map((_, i) => make('button', { type: 'button', 'aria-pressed': String(i === reply.face && !photo.box), onclick: () => { photo.box = null; photo.face = i; ask(); } }, 'Face ' + (i + 1))) : [];
  find('.gjp-faces').replaceChildren(...faces);
  find('.gjp-faces').hidden = !faces.length;
  paintGate(reply);
  paintRows(reply);
  const names = [...reply.rows].sort((a, b) => a.label.localeCompare(b.label));
  act('attribute').replaceChildren(make('option', { value: 'all' }, 'All attributes together'), ...names.map((row) => make('option', { value: row.name }, row.label)));
  select(reply.attribute, false);
  photo.drawn = performance.now();
}

function paintGate(reply) {
  const { gate } = reply;
  const box = find('.gjp-gate');
  box.dataset.verdict = gate.verdict || 'none';
  box.replaceChildren(make('b', {}, gate.title), make('span', {}, gate.sentence), ...(gate.auroc ? [make('small', {}, gate.auroc)] : []));
  for (const node of [right(), find('.gjp-said')]) node.classList.toggle('gjp-grey', reply.greyed);
}

function paintRows(reply) {
  const at = (p) => (100 * p).toFixed(2) + '%';
  right().querySelector('.gjp-rows').replaceChildren(...reply.rows.map((row) => make('button', { type: 'button', class: 'gjp-row', 'data-name': row.name, 'data-enough': String(row.enough), title: row.sentence, 'aria-label': row.sentence, onclick: () => select(row.name, true) },
    make('span', {}, row.label),
    make('span', { class: 'gjp-track', 'aria-hidden': 'true' },
      row.enough ? make('i', { style: 'left:' + at(row.low) + ';width:' + at(Math.max(0.004, row.high - row.low)) }) : null,
      row.enough ? make('b', { style: 'left:' + at(row.rate) }) : null,
      make('u', { style: 'left:' + at(row.p) })),
    make('em', {}, asPercent(row.p)),
    make('small', {}, row.enough ? asPercent(row.rate) : row.count == null ? '' : 'too few'))));
  right().querySelector('.gjp-order').hidden = false;
}

function select(name, draw) {
  photo.attribute = name;
  act('attribute').value = name;
  for (const row of right().querySelectorAll('.gjp-row')) row.setAttribute('aria-pressed', String(row.dataset.name === name));
  const row = photo.reply.rows.find((one) => one.name === name);
  setText(find('.gjp-sentence'), row ? row.sentence : photo.reply.together);
  if (draw) drawCurve();
}

// Without a picture yet, all attributes together: the plot's library is then there when a picture comes.
function drawCurve() {
  if (document.body.dataset.screen !== 'photo' || !photo.models.length) return;
  const row = photo.reply?.rows.find((one) => one.name === photo.attribute);
  trigger('curve', { model: act('model').value, attribute: row ? row.name : 'all', at: row ? row.p : null, theme: theme() });
}
window.addEventListener('gj-screen', (event) => { if (event.detail === 'photo' && !photo.reply) drawCurve(); });

// The crop: a square in shares of the picture; the sliders and the pointer move it.
function placeBox(box, fromServer) {
  const { width, height } = photo.reply.size;
  const node = find('.gjp-box');
  const [left, top, right_, bottom] = box;
  Object.assign(node.style, { left: 100 * left / width + '%', top: 100 * top / height + '%', width: 100 * (right_ - left) / width + '%', height: 100 * (bottom - top) / height + '%' });
  if (!fromServer) return;
  const values = { x: (left + right_) / 2 / width, y: (top + bottom) / 2 / height, side: (right_ - left) / Math.min(width, height) };
  for (const [key, value] of Object.entries(values)) find('[data-box=' + key + ']').value = value;
}

let settle = 0;
function adjust() {
  const { width, height } = photo.reply.size;
  const value = (key) => Number(find('[data-box=' + key + ']').value);
  const half = value('side') * Math.min(width, height) / 2, x = value('x') * width, y = value('y') * height;
  photo.box = [x - half, y - half, x + half, y + half];
  placeBox(photo.box, false);
  clearTimeout(settle);
  settle = setTimeout(() => ask(), 250);
}

let held = null;
find('.gjp-whole').addEventListener('pointerdown', (event) => {
  if (!photo.reply) return;
  held = { x: event.clientX, y: event.clientY, bx: Number(find('[data-box=x]').value), by: Number(find('[data-box=y]').value) };
  event.currentTarget.setPointerCapture(event.pointerId);
});
find('.gjp-whole').addEventListener('pointermove', (event) => {
  if (!held) return;
  const area = event.currentTarget.getBoundingClientRect();
  if (Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
  find('[data-box=x]').value = held.bx + (event.clientX - held.x) / area.width;
  find('[data-box=y]').value = held.by + (event.clientY - held.y) / area.height;
  adjust();
});
for (const end of ['pointerup', 'pointercancel']) find('.gjp-whole').addEventListener(end, () => { held = null; });

function forgotten() {
  photo.reply = null;
  find('.gjp-shown').hidden = find('.gjp-said').hidden = act('forget').hidden = true;
  find('.gjp-whole img').removeAttribute('src'); find('.gjp-crop').removeAttribute('src');
  right().querySelector('.gjp-rows').replaceChildren(make('p', { class: 'gj-hint' }, 'Your picture is forgotten.'));
  act('file').value = '';
  drawCurve();
}

const camera = find('.gjp-camera'), video = camera.querySelector('video');
async function cameraOn() {
  try {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'user' }, audio: false });
    camera.hidden = false;
    await video.play();
  } catch { say('The webcam is not available: the browser or the system did not allow it.'); }
}
function cameraOff() {
  video.srcObject?.getTracks().forEach((track) => track.stop());
  video.srcObject = null;
  camera.hidden = true;
}
function snap() {
  const sheet = make('canvas', { width: video.videoWidth, height: video.videoHeight });
  sheet.getContext('2d').drawImage(video, 0, 0);
  sheet.toBlob((blob) => { cameraOff(); send(blob); }, 'image/jpeg', 0.95);
}

const PHOTO = {
  webcam: cameraOn, off: cameraOff, snap,
  avatar: () => ask({ avatar: Math.floor(Math.random() * 1e9) }),
  astronaut: () => ask({ example: 'astronaut' }),
  forget: () => { photo.order += 1; trigger('forget', { order: photo.order }); },
  reset: () => { photo.box = null; ask(); },
  edit: () => { photo.order += 1; trigger('edit', { order: photo.order, model: photo.reply.model, face: photo.face, box: photo.box }); },
};
root.addEventListener('click', (event) => { const name = event.target.closest('button[data-photo]')?.dataset.photo; if (name) PHOTO[name](); });
find('.gj-message button').addEventListener('click', () => say(''));
act('file').addEventListener('change', (event) => { send(event.target.files[0]); event.target.value = ''; });
act('model').addEventListener('change', () => { photo.box = null; photo.face = 0; photo.attribute = null; if (photo.reply) ask(); else drawCurve(); });
act('attribute').addEventListener('change', (event) => select(event.target.value, true));
for (const slider of findAll('[data-box]')) slider.addEventListener('input', adjust);
const drop = find('.gjp-drop');
drop.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); act('file').click(); } });
for (const [kind, over] of [['dragover', true], ['dragleave', false], ['drop', false]]) {
  root.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.toggle('gjp-over', over); if (kind === 'drop') send(event.dataTransfer.files[0]); });
}
document.addEventListener('paste', (event) => {
  const file = [...(event.clipboardData?.files || [])][0];
  if (file && document.body.dataset.screen === 'photo') { event.preventDefault(); send(file); }
});
new MutationObserver(() => { if (photo.theme !== theme()) { photo.theme = theme(); drawCurve(); } }).observe(document.body, { attributes: true, attributeFilter: ['class'] });
photo.theme = theme();
page.photoScreen = photo;
