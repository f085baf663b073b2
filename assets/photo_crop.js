// @ts-check
// The crop: a square in shares of the picture; the sliders and the pointer move it.

/** @typedef {[number, number, number, number]} Box left, top, right and bottom, in pixels of the picture */

/** @param {{ find: (selector: string) => any, photo: import('./photo.js').Photo, changed: () => void }} parts */
export function mountCrop({ find, photo, changed }) {
  const slider = (/** @type {string} */ key) => find(`[data-box=${key}]`);
  const sizeOf = () => /** @type {import('./photo.js').Reply} */ (photo.reply).size;
  let settle = 0;
  /** @type {{ x: number, y: number, bx: number, by: number } | null} */
  let held = null;

  /** @type {(box: Box, fromServer: boolean) => void} */
  function place(box, fromServer) {
    const { width, height } = sizeOf();
    const [left, top, right, bottom] = box;
    const share = (/** @type {number} */ value, /** @type {number} */ of) => `${(100 * value) / of}%`;
    const style = { left: share(left, width), top: share(top, height) };
    Object.assign(style, { width: share(right - left, width), height: share(bottom - top, height) });
    Object.assign(find('.gjp-box').style, style);
    if (!fromServer) return;
    slider('x').value = (left + right) / 2 / width;
    slider('y').value = (top + bottom) / 2 / height;
    slider('side').value = (right - left) / Math.min(width, height);
  }

  function adjust() {
    const { width, height } = sizeOf();
    const value = (/** @type {string} */ key) => Number(slider(key).value);
    const half = (value('side') * Math.min(width, height)) / 2;
    const [x, y] = [value('x') * width, value('y') * height];
    photo.box = [x - half, y - half, x + half, y + half];
    place(photo.box, false);
    clearTimeout(settle);
    settle = window.setTimeout(changed, 250);
  }

  const whole = find('.gjp-whole');
  whole.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (!photo.reply) return;
    const [bx, by] = ['x', 'y'].map((key) => Number(slider(key).value));
    held = { x: event.clientX, y: event.clientY, bx, by };
    whole.setPointerCapture(event.pointerId);
  });
  whole.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    if (!held) return;
    const area = whole.getBoundingClientRect();
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (Math.hypot(dx, dy) < 4) return;
    slider('x').value = held.bx + dx / area.width;
    slider('y').value = held.by + dy / area.height;
    adjust();
  });
  for (const end of ['pointerup', 'pointercancel'])
    whole.addEventListener(end, () => {
      held = null;
    });
  for (const key of ['x', 'y', 'side']) slider(key).addEventListener('input', adjust);
  return { place, still: () => clearTimeout(settle) };
}
