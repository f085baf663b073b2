// @ts-check
// Words inside a PNG file: what a picture shows stays with it wherever it goes.

const TABLE = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

/** @param {Uint8Array} data */
export function crc32(data) {
  let c = 0xffffffff;
  for (const byte of data) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

/** @type {(type: string, data: Uint8Array) => Uint8Array} */
function chunk(type, data) {
  const out = new Uint8Array(12 + data.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, data.length);
  out.set(new TextEncoder().encode(type), 4);
  out.set(data, 8);
  view.setUint32(8 + data.length, crc32(out.subarray(4, 8 + data.length)));
  return out;
}

/**
 * The PNG with these texts (iTXt, in UTF-8) after its header.
 * @param {Uint8Array} png
 * @param {Record<string, string>} texts
 */
export function withText(png, texts) {
  const head = 8 + 25; // the signature, and the header with its length, type and checksum
  const encode = new TextEncoder();
  const chunks = Object.entries(texts).map(([key, text]) => {
    const name = encode.encode(key);
    const words = encode.encode(text);
    const data = new Uint8Array(name.length + 5 + words.length); // five zeros: plain, no language, no translation
    data.set(name);
    data.set(words, name.length + 5);
    return chunk('iTXt', data);
  });
  const parts = [png.subarray(0, head), ...chunks, png.subarray(head)];
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
