// Attributes as chips with three states. Click or Space: with, without, free in turn; + and - and 0 set one directly.
const NEXT = { free: 'with', with: 'without', without: 'free' };
const SPOKEN = { free: 'free', with: 'with', without: 'without' };
let chipNodes = new Map();

function setWish(name, state) {
  const { settings } = store;
  settings.with = settings.with.filter((one) => one !== name);
  settings.without = settings.without.filter((one) => one !== name);
  if (state !== 'free') settings[state].push(name);
  wishesChanged();
}

function setWishes(wishes) {
  store.settings.with = [...(wishes.with || [])];
  store.settings.without = [...(wishes.without || [])];
  wishesChanged();
}

function wishesChanged() {
  paintChips();
  paintPresets();
  writeAddress();
  walkOn();
}

function buildChips() {
  const box = find('.gj-chips');
  chipNodes = new Map();
  const groups = model().groups.map((group) => {
    const chips = group.names.map(({ name, label }) => {
      const chip = make('button', { type: 'button', class: 'gj-chip', 'data-name': name, 'data-label': label },
        make('i', { 'aria-hidden': 'true' }), label);
      chipNodes.set(name, chip);
      return chip;
    });
    return make('div', { class: 'gj-group', role: 'group', 'aria-label': group.title }, make('h3', {}, group.title), make('div', {}, ...chips));
  });
  box.replaceChildren(...groups);
  const presets = model().presets.map((preset) => make('button', {
    type: 'button', class: 'gj-preset', 'data-preset': JSON.stringify(preset.values),
    onclick: () => setWishes(structuredClone(preset.values)),
  }, preset.label));
  const surprise = make('button', { type: 'button', class: 'gj-preset', 'data-do': 'surprise', title: 'A combination that no training image has' }, 'Surprise me');
  const clear = make('button', { type: 'button', class: 'gj-preset', 'data-do': 'clear' }, 'Clear');
  find('.gj-presets').replaceChildren(...presets, surprise, clear);
  paintChips();
  paintPresets();
}

function paintChips() {
  for (const [name, chip] of chipNodes) {
    const state = stateOf(name);
    chip.dataset.state = state;
    // A button with three states: "mixed" is how a screen reader hears the one that is neither on nor off.
    chip.setAttribute('aria-pressed', { free: 'false', with: 'true', without: 'mixed' }[state]);
    chip.setAttribute('aria-label', chip.dataset.label + ': ' + SPOKEN[state]);
  }
}

function paintPresets() {
  const now = JSON.stringify([[...store.settings.with].sort(), [...store.settings.without].sort()]);
  for (const node of findAll('[data-preset]')) {
    const values = JSON.parse(node.dataset.preset);
    const mine = JSON.stringify([[...(values.with || [])].sort(), [...(values.without || [])].sort()]);
    node.setAttribute('aria-pressed', String(mine === now));
  }
}

// The line under each name: P(attribute | image), averaged over the chains of the first column.
function paintSureness(means) {
  model().names.forEach((name, k) => {
    chipNodes.get(name)?.style.setProperty('--p', means[k].toFixed(3));
  });
}

function paintBadge(badge) {
  const box = find('.gj-badge');
  box.dataset.kind = badge.novel ? 'novel' : badge.count === badge.total ? 'any' : 'seen';
  setText(box.querySelector('b'), badge.novel ? 'Never seen' : badge.count === badge.total ? 'Free' : 'Seen');
  setText(box.querySelector('span'), badge.sentence);
}

function listenToChips() {
  const box = find('.gj-chips');
  box.addEventListener('click', (event) => {
    const chip = event.target.closest('.gj-chip');
    if (!chip) return;
    const state = stateOf(chip.dataset.name);
    setWish(chip.dataset.name, event.shiftKey && state !== 'without' ? 'without' : NEXT[state]);
  });
  box.addEventListener('keydown', (event) => {
    const chip = event.target.closest('.gj-chip');
    if (!chip) return;
    const direct = { '+': 'with', '=': 'with', '-': 'without', 0: 'free', Delete: 'free', Backspace: 'free' }[event.key];
    const chips = [...chipNodes.values()];
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (direct) setWish(chip.dataset.name, direct);
    else if (move) chips[(chips.indexOf(chip) + move + chips.length) % chips.length].focus();
    else return;
    event.preventDefault();
  });
}
