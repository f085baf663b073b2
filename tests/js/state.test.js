import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  choose,
  defaults,
  NEXT,
  readAddress,
  refusal,
  sameChoices,
  sentence,
  shelf,
  stateOf,
  writeAddress,
} from '../../assets/state.js';

const row = (key, kind, more = {}) => ({
  key,
  kind,
  label: key,
  default: null,
  low: 0,
  high: 0,
  choices: [],
  own: false,
  shared: true,
  ...more,
});
const TABLE = [
  row('model', 'choice'),
  row('with', 'names', { label: 'Required', default: [] }),
  row('without', 'names', { label: 'Excluded', default: [] }),
  row('strengths', 'strengths', { default: [], high: 5 }),
  row('chains', 'whole', { default: 16, low: 1, high: 64 }),
  row('sampler', 'choice', { choices: ['resampling', 'marginalizing'], own: true }),
  row('lift', 'number', { low: 0.02, high: 40, own: true }),
  row('locked', 'rows', { default: [], shared: false }),
  row('walk', 'text', { default: '' }),
];
const names = (...list) =>
  list.map((name) => ({ name, label: name, yes: name.toLowerCase(), no: `no ${name.toLowerCase()}` }));
const MODELS = [
  {
    name: 'avatars',
    family: ['avatars', 'avatars-paper'],
    names: ['Smiling', 'Hat', 'Bald'],
    groups: [{ title: 'All', names: names('Smiling', 'Hat', 'Bald') }],
    presets: [{ label: 'Hat', values: { with: ['Hat'] } }],
    exclusive: { Hat: ['Bald'], Bald: ['Hat'], Smiling: [] },
  },
  {
    name: 'avatars-paper',
    family: ['avatars', 'avatars-paper'],
    names: ['Smiling', 'Hat', 'Bald'],
    groups: [],
    presets: [],
  },
  { name: 'shoes', family: ['shoes'], names: ['Boots'], groups: [], presets: [] },
];

const open = (search) => readAddress(search, TABLE, MODELS);
const write = (settings, search = '') => writeAddress(search, settings, TABLE, MODELS);

test('a chip goes through its three states and back', () => {
  const settings = defaults(TABLE, MODELS);
  const seen = [];
  for (let i = 0; i < 3; i++) {
    Object.assign(settings, choose(settings, 'Hat', NEXT[stateOf(settings, 'Hat')]));
    seen.push(stateOf(settings, 'Hat'));
  }
  assert.deepEqual(seen, ['with', 'without', 'free']);
});

test('requiring an attribute frees its rivals, and only those that were required', () => {
  const settings = { ...defaults(TABLE, MODELS), with: ['Bald', 'Smiling'], without: [] };
  assert.deepEqual(choose(settings, 'Hat', 'with', ['Bald']), { with: ['Smiling', 'Hat'], without: [] });
  const excluded = { ...settings, with: [], without: ['Bald'] };
  assert.deepEqual(choose(excluded, 'Hat', 'with', ['Bald']), { with: ['Hat'], without: ['Bald'] });
  assert.deepEqual(choose(settings, 'Hat', 'without', ['Bald']).with, ['Bald', 'Smiling']);
});

test('a plain visit opens on the first preset, an address without attributes on nothing', () => {
  assert.deepEqual(open('').settings.with, ['Hat']);
  assert.deepEqual(open('?free=1').settings.with, []);
  assert.deepEqual(open('?model=shoes').settings.with, []);
});

test('what an address tells comes back unchanged', () => {
  const settings = { ...defaults(TABLE, MODELS), with: ['Smiling'], without: ['Bald'], strengths: { Smiling: 2.5 } };
  Object.assign(settings, { chains: 9, sampler: 'resampling', lift: 1.5, walk: 'Hat;-Hat@7;Smiling' });
  const { settings: again, ignored, limited } = open(`?${write(settings)}`);
  assert.deepEqual(again, settings);
  assert.deepEqual([ignored, limited], [[], []]);
});

test('locks stay out of addresses, and foreign words stay in', () => {
  const settings = { ...defaults(TABLE, MODELS), with: ['Hat'], locked: [3] };
  assert.equal(write(settings, '?screen=photo&chains=9'), 'screen=photo&with=Hat');
  assert.equal(write(defaults(TABLE, MODELS)), 'free=1');
});

test('what is not known is left out and named; what is out of range is brought into it and named', () => {
  const { settings, ignored, limited } = open('?model=dogs&with=Hat,Nonsense&sampler=dice&chains=500&lift=x');
  assert.equal(settings.model, 'avatars');
  assert.deepEqual(settings.with, ['Hat']);
  assert.equal(settings.chains, 64);
  assert.deepEqual(ignored, ['Model', 'Required', 'sampler', 'lift']);
  assert.deepEqual(limited, ['chains']);
});

test('a number that is not taken is quoted, with what is wrong and what to choose', () => {
  const [chains, lift] = [TABLE[4], TABLE[6]];
  assert.equal(refusal(chains, '500'), 'chains: 500 is out of range. Choose 1 to 64 on this server.');
  assert.equal(
    refusal(chains, '2.5'),
    'chains: 2.5 is not a whole number. Choose a whole number from 1 to 64 on this server.',
  );
  assert.equal(refusal(chains, ''), 'chains: the field is empty. Choose 1 to 64 on this server.');
  assert.equal(refusal(lift, 'much'), 'lift: much is not a number. Choose 0.02 to 40.');
  assert.equal(refusal(lift, '0'.repeat(99)), `lift: ${'0'.repeat(20)} is out of range. Choose 0.02 to 40.`);
});

test('strengths of unknown attributes are dropped', () => {
  assert.deepEqual(open('?strengths=Hat:2,Dog:3,Bald:x,Smiling:99').settings.strengths, { Hat: 2, Smiling: 5 });
});

test('a sentence says what is required and what is excluded', () => {
  assert.equal(sentence({ with: ['Smiling', 'Hat'], without: ['Bald'] }, MODELS[0]), 'smiling, hat; no bald');
  assert.equal(sentence({ with: [], without: [] }, MODELS[0]), '');
});

test('two combinations are the same in any order', () => {
  assert.ok(sameChoices({ with: ['A', 'B'] }, { with: ['B', 'A'], without: [] }));
  assert.ok(!sameChoices({ with: ['A'] }, { without: ['A'] }));
});

test('one model stands for each kind of data', () => {
  assert.deepEqual(
    shelf(MODELS).map((one) => one.name),
    ['avatars', 'shoes'],
  );
});
