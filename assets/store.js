// The state of the screen: one object of settings, by the keys of the server's table, mirrored in the address.
const store = {
  table: [], models: [], settings: {}, device: '', bestOf: 10,
  order: Date.now(), fresh: 1, run: '', playing: false, status: 'waiting', step: 0, steered: false, fps: 18,
};
const rowOf = (key) => store.table.find((row) => row.key === key);
const model = () => store.models.find((one) => one.name === store.settings.model) || store.models[0];
const labelOf = (name) => model().groups.flatMap((group) => group.names).find((one) => one.name === name)?.label || name;
// The value in force: the visitor's, or the model's own where the field is empty.
const inForce = (key) => store.settings[key] ?? (rowOf(key).own ? model().sampling[key] ?? 0 : rowOf(key).default);
const asked = () => [
  ...store.settings.with.map((name) => ({ name, wanted: true })),
  ...store.settings.without.map((name) => ({ name, wanted: false })),
];
const stateOf = (name) => (store.settings.with.includes(name) ? 'with' : store.settings.without.includes(name) ? 'without' : 'free');

function defaults(name) {
  const chosen = store.models.find((one) => one.name === name) || store.models[0];
  const settings = {};
  for (const row of store.table) settings[row.key] = row.kind === 'names' ? [] : row.default;
  settings.model = chosen.name;
  return settings;
}

// A value from an address: brought into range where it can be, dropped where it cannot.
function sane(row, text) {
  if (row.kind === 'names') {
    const names = model().names;
    return [...new Set(text.split(',').filter((name) => names.includes(name)))];
  }
  if (row.kind === 'choice') {
    const choices = row.key === 'model' ? store.models.map((one) => one.name) : row.choices;
    return choices.includes(text) ? text : undefined;
  }
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number)) return undefined;
  const value = clamp(number, row.low, row.high);
  return row.kind === 'whole' ? Math.round(value) : value;
}

// Settings from the address; a plain visit opens on the model's first preset.
function readAddress() {
  const query = new URLSearchParams(location.search);
  const ours = store.table.filter((row) => query.has(row.key));
  const wantedModel = query.get('model');
  store.settings = defaults(wantedModel);
  const ignored = [];
  if (wantedModel && store.settings.model !== wantedModel) ignored.push('model');
  for (const row of ours) {
    if (row.key === 'model') continue;
    const value = sane(row, query.get(row.key));
    const given = query.get(row.key).split(',').filter(Boolean);
    if (value === undefined || (row.kind === 'names' && value.length < given.length)) ignored.push(row.key);
    if (value !== undefined) store.settings[row.key] = value;
  }
  store.settings.without = store.settings.without.filter((name) => !store.settings.with.includes(name));
  if (!ours.some((row) => row.kind === 'names') && model().presets.length && !query.has('free')) {
    Object.assign(store.settings, { with: [], without: [] }, structuredClone(model().presets[0].values));
  }
  if (ignored.length) say('This link asks for something that is not here; left out: ' + ignored.join(', ') + '.');
}

function addressOf(settings, extra = {}) {
  const query = new URLSearchParams(location.search);
  for (const row of store.table) query.delete(row.key);
  query.delete('free');
  for (const row of store.table) {
    const value = { ...settings, ...extra }[row.key];
    const same = row.key === 'model' ? value === store.models[0].name : value === row.default;
    if (value == null || same || (Array.isArray(value) && !value.length)) continue;
    query.set(row.key, Array.isArray(value) ? value.join(',') : String(value));
  }
  // Without any wish the address says so, or the page would open on its preset.
  if (!settings.with.length && !settings.without.length) query.set('free', '1');
  const text = query.toString().replaceAll('%2C', ',');
  return location.pathname + (text ? '?' + text : '') + location.hash;
}
const writeAddress = () => history.replaceState(null, '', addressOf(store.settings));

// What goes to the server: never a field that is empty, so that the model's own value holds.
function letter() {
  store.order += 1;
  const settings = Object.fromEntries(Object.entries(store.settings).filter(([, value]) => value != null));
  return { order: store.order, run: store.run, playing: store.playing, fresh: store.fresh, fps: Math.round(store.fps), settings, step: store.step };
}
