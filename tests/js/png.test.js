import assert from 'node:assert/strict';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { crc32, withText } from '../../assets/png.js';

// One black pixel.
const PNG = Uint8Array.from(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==', 'base64'),
);

/** Type, data and whether the checksum is right, of each part. */
function chunks(png) {
  const view = new DataView(png.buffer, png.byteOffset);
  const found = [];
  for (let at = 8; at < png.length; ) {
    const length = view.getUint32(at);
    const type = Buffer.from(png.subarray(at + 4, at + 8)).toString();
    const good = view.getUint32(at + 8 + length) === zlib.crc32(png.subarray(at + 4, at + 8 + length));
    found.push({ type, text: Buffer.from(png.subarray(at + 8, at + 8 + length)).toString(), good });
    at += 12 + length;
  }
  return found;
}

test('the checksum is that of PNG', () => {
  assert.equal(crc32(new TextEncoder().encode('123456789')), 0xcbf43926);
});

test('texts stand after the header, whole and in UTF-8', () => {
  const found = chunks(withText(PNG, { Title: 'Studio', Description: 'smiling; naïve' }));
  assert.deepEqual(
    found.map((one) => one.type),
    ['IHDR', 'iTXt', 'iTXt', 'IDAT', 'IEND'],
  );
  assert.ok(found.every((one) => one.good));
  assert.equal(found[2].text, 'Description\0\0\0\0\0smiling; naïve');
});
