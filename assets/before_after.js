// "Edit": the picture becomes the start of the chains on the first screen, and a card there shows before and after.
const edit = { before: null, chain: 0, split: 0.5, timer: 0 };

function startEditing(reply) {
  page.photo = true;
  edit.before = new Image();
  edit.before.src = reply.crop;
  const settings = { model: reply.model, start: 'photo', with: reply.with, without: reply.without, compare: 'none', chains: 4 };
  page.go('studio', false);
  page.open(settings);
  beforeAfter();
}

function beforeAfter() {
  const side = document.querySelector('#gj-studio .gj-side');
  side.querySelector('.gjp-compare')?.remove();
  const canvas = make('canvas', { role: 'img', 'aria-label': 'Your picture on the left, the chain on the right of the line' });
  const slider = make('input', { type: 'range', min: 0, max: 1, step: 0.01, value: edit.split, 'aria-label': 'Before and after', oninput: (event) => { edit.split = Number(event.target.value); paintBeforeAfter(); } });
  const card = make('section', { class: 'gj-card gjp-compare', 'aria-label': 'Before and after' },
    make('p', {}, make('b', {}, 'Your picture, before and after. '), 'Everything that the model saw is preset. Toggle one attribute below, then Run.'),
    make('div', { class: 'gjp-compare-view' }, canvas, slider),
    make('div', { class: 'gj-row' },
      make('button', { type: 'button', onclick: () => { edit.chain += 1; paintBeforeAfter(); } }, 'Next chain'),
      make('button', { type: 'button', onclick: () => page.go('photo') }, 'Back to the picture')));
  side.prepend(card);
  clearInterval(edit.timer);
  edit.timer = setInterval(() => {
    if (page.store.settings.start !== 'photo') { card.remove(); clearInterval(edit.timer); return; }
    if (!document.hidden && document.body.dataset.screen !== 'photo') paintBeforeAfter();
  }, 160);
}

async function paintBeforeAfter() {
  const canvas = document.querySelector('.gjp-compare canvas'), frame = page.shown();
  if (!canvas || !frame || !edit.before.complete) return;
  const lane = frame.lanes[0], size = canvas.clientWidth, chain = edit.chain % lane.n;
  const after = await bitmap(lane.src, (chain % lane.columns) * lane.size, Math.floor(chain / lane.columns) * lane.size, lane.size, lane.size);
  const context = sharpen(canvas, size, size), cut = edit.split * size;
  context.clearRect(0, 0, size, size);
  context.drawImage(after, 0, 0, size, size);
  context.save();
  context.beginPath(); context.rect(0, 0, cut, size); context.clip();
  context.drawImage(edit.before, 0, 0, size, size);
  context.restore();
  after.close();
  context.fillStyle = colours.card; context.fillRect(cut - 1.5, 0, 3, size);
  canvas.dataset.step = frame.step;
}
