// @ts-check
// How it works: pictures from the server, each of images, bars, lines or points.
import { make } from './base.js';

/** @typedef {{ src: string, text: string }} Image */
/** @typedef {{ label: string, value: number, text: string }} Bar */
/** @typedef {{ label: string, values: number[] }} Line */
/**
 * One picture of an explanation (app/hood.py, app/explain.py).
 * @typedef {object} Picture
 * @property {string} title
 * @property {string} text
 * @property {Image[]} [images]
 * @property {Bar[]} [bars]
 * @property {Line[]} [lines]
 * @property {[number, number] | null} [range] of the lines
 * @property {[number, number][]} [points] predicted and actual
 * @property {string} [note]
 */

const SVG = 'http://www.w3.org/2000/svg';
/** @type {(tag: string, attributes: Record<string, string | number>, ...children: Element[]) => Element} */
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** @type {(box: HTMLElement, pictures: Picture[]) => void} */
export function paintPictures(box, pictures) {
  box.replaceChildren(...pictures.map(article));
}

/** @param {Picture} one */
function article(one) {
  return make(
    'article',
    {},
    make('h3', {}, one.title),
    make('p', {}, one.text),
    one.images ? make('div', { class: 'gjc-strip' }, ...one.images.map(figure)) : null,
    one.bars ? make('div', { class: 'gjc-bars' }, ...one.bars.map(barOf)) : null,
    one.lines ? linesOf(one.lines, one.range) : null,
    one.points ? pointsOf(one.points) : null,
    one.note ? make('p', { class: 'gj-hint' }, one.note) : null,
  );
}

/** @param {Image} image */
const figure = (image) =>
  make('figure', {}, make('img', { src: image.src, alt: image.text }), make('figcaption', {}, image.text));

/** @param {Bar} bar */
const barOf = (bar) =>
  make(
    'div',
    {},
    make('span', {}, bar.label),
    make('i', {}, make('b', { style: `width:${Math.max(1, 100 * bar.value)}%` })),
    make('em', {}, bar.text),
  );

/** @type {(lines: Line[], range?: [number, number] | null) => HTMLElement} */
function linesOf(lines, range) {
  const all = lines.flatMap((one) => one.values);
  const [low, high] = range ?? [Math.min(...all, 0), Math.max(...all, 1)];
  /** @param {number[]} values */
  const path = (values) =>
    values
      .map((value, i) => {
        const x = (300 * i) / Math.max(1, values.length - 1);
        const y = 84 - (80 * (value - low)) / (high - low || 1);
        return `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
      })
      .join('');
  const chart = svg(
    'svg',
    {
      viewBox: '0 0 300 88',
      preserveAspectRatio: 'xMinYMid',
      role: 'img',
      'aria-label': lines.map((one) => one.label).join(', '),
    },
    svg('path', { d: 'M0 84H300', class: 'gjc-axis' }),
    ...lines.map((one, i) => svg('path', { d: path(one.values), style: `stroke:var(--gj-series-${i + 1})` })),
  );
  const names = lines.map((one, i) => make('span', { style: `color:var(--gj-series-${i + 1})` }, `${one.label} `));
  return make('div', { class: 'gjc-lines' }, chart, make('p', { class: 'gj-hint' }, ...names));
}

/** @param {[number, number][]} points */
function pointsOf(points) {
  const chart = svg(
    'svg',
    { viewBox: '-4 -4 148 148', role: 'img', 'aria-label': 'Predicted against actual', class: 'gjc-square' },
    svg('path', { d: 'M0 0V140H140', class: 'gjc-axis' }),
    svg('path', { d: 'M0 140L140 0', class: 'gjc-diagonal' }),
    ...points.map(([said, was]) => svg('circle', { cx: 140 * said, cy: 140 - 140 * was, r: 3.2 })),
  );
  return make('div', { class: 'gjc-lines' }, chart, make('p', { class: 'gj-hint' }, 'across: predicted, up: actual'));
}
