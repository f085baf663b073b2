import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compact,
  DRAWN,
  fromShare,
  levelWords,
  lifts,
  LONGEST,
  niceTicks,
  robustRange,
  some,
  thin,
  toShare,
} from '../../assets/scales.js';

test('ticks are round and lie inside', () => {
  assert.deepEqual(niceTicks(0, 1), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(niceTicks(-30, 95), [0, 50]);
  for (const [low, high] of [
    [0, 3],
    [-1e-4, 2e-4],
    [1234, 98765],
    [-5, -4.99],
  ]) {
    const ticks = niceTicks(low, high);
    assert.ok(ticks.length >= 2 && ticks.length <= 6, `${low} to ${high}: ${ticks}`);
    assert.ok(ticks.every((tick) => tick >= low - 1e-9 && tick <= high + 1e-9));
  }
});

test('one value far out does not set the range', () => {
  const values = [...Array(200).keys(), 1e9, Number.NaN];
  const [low, high] = robustRange(values);
  assert.ok(low < 5 && high < 300);
  assert.deepEqual(robustRange([]), [0, 1]);
});

test('long lists are thinned and keep their end', () => {
  const list = [...Array(1000).keys()];
  assert.equal(some(list).at(-1), 999);
  assert.ok(some(list).length <= DRAWN + 1);
  assert.ok(thin(list).length <= LONGEST);
  assert.equal(thin(list).at(-1), 999);
  assert.equal(some([1, 2]).length, 2);
});

test('a line breaks where a chain is lifted, or steps begin anew', () => {
  const at = (step, level) => ({ step, level });
  assert.deepEqual(lifts([at(1, 4), at(2, 2), at(3, 3), at(4, 1)]), [2]);
  assert.deepEqual(lifts([at(5, 0), at(1, 0)]), [1]);
  assert.deepEqual(lifts([at(1, 0), at(2, 0)]), []);
});

test('a scale of equal ratios goes there and back', () => {
  for (const value of [0.5, 1, 3, 20]) assert.ok(Math.abs(fromShare(toShare(value, 0.5, 20), 0.5, 20) - value) < 1e-9);
  assert.equal(toShare(0, 0.02, 20), 0);
  assert.equal(toShare(99, 0.02, 20), 1);
});

test('numbers in few signs', () => {
  assert.deepEqual([compact(12345), compact(-0.12345), compact(0)], ['12.3k', '-0.123', '0']);
  assert.deepEqual([levelWords(0), levelWords(1.234)], ['0', '1.2']);
});
