import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bit, meansOf, unpack } from '../../assets/wire.js';

const base64 = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');

test('a frame is unpacked step by step, chain by chain, label by label', () => {
  const lane = {
    n: 2,
    energy: base64(new Float32Array([1, 2, 3, 4])),
    grad: base64(new Float32Array([5, 6, 7, 8])),
    y: base64(new Uint8Array([0b10000000, 0b10000000, 0b00000001, 0, 0, 0, 0, 0b01000000])), // 2 steps, 2 chains, 10 labels
  };
  const points = unpack({ steps: [7, 8], levels: [3, 2] }, lane, 10);
  assert.deepEqual(
    points.map((point) => [point.step, point.level, ...point.energy, ...point.grad]),
    [
      [7, 3, 1, 2, 5, 6],
      [8, 2, 3, 4, 7, 8],
    ],
  );
  assert.equal(bit(points[0].labels, 0, 0, 10), 1);
  assert.equal(bit(points[0].labels, 0, 8, 10), 1);
  assert.equal(bit(points[0].labels, 1, 7, 10), 1);
  assert.equal(bit(points[1].labels, 1, 9, 10), 1);
  assert.equal(bit(points[1].labels, 0, 0, 10), 0);
});

test('a frame without steps has no points', () => {
  assert.deepEqual(unpack({ steps: [], levels: [] }, { n: 2 }, 3), []);
});

test('means are over the chains', () => {
  const means = meansOf({ n: 2, sure: new Uint8Array([255, 0, 0, 255]) }, 2);
  assert.deepEqual([...means], [0.5, 0.5]);
});
