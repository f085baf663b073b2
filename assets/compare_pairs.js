// @ts-check
// The map of pairs: one cell for each pair of attributes that can be true together; a click opens it in the studio.
import { make, percent, setText } from './base.js';

/**
 * @typedef {{ title: string, model: string, chains: number, names: string[],
 *   cells: { pair: [string, string], value: number, training: number }[] }} Pairs
 */

/**
 * @param {{ more: (selector: string) => any, pairs: Pairs | null, attributes: { name: string, label: string }[],
 *   visit: (wanted: string[], model: string) => void }} parts
 */
export function drawPairs({ more, pairs, attributes, visit }) {
  more('.gjc-pairs').hidden = !pairs;
  if (!pairs) return;
  const { names } = pairs;
  const label = (/** @type {string} */ name) => attributes.find((one) => one.name === name)?.label || name;
  const count = `${pairs.chains} sample${pairs.chains === 1 ? '' : 's'}`;
  setText(
    more('.gjc-pairs-note'),
    `Matches the request, ${pairs.title}: only ${count} per cell; indicative. Click a cell to open the pair in the studio.`,
  );
  const known = new Map(pairs.cells.map((cell) => [cell.pair.join('+'), cell]));
  const grid = more('.gjc-grid');
  grid.style.gridTemplateColumns = `minmax(8em, auto) repeat(${names.length}, minmax(20px, 30px))`;
  const head = [make('i'), ...names.map((name) => make('span', { class: 'gjc-up' }, make('em', {}, label(name))))];
  /** @type {(a: string, b: string) => HTMLElement} */
  const cellOf = (a, b) => {
    const cell = known.get(`${a}+${b}`) || known.get(`${b}+${a}`);
    if (!cell || a === b) return make('i');
    const seen = `${cell.training.toLocaleString('en')} training images`;
    const text = `${label(a)} and ${label(b).toLowerCase()}: ${percent(cell.value)} match the request, ${seen}`;
    const facts = { 'data-pair': `${a},${b}`, 'data-value': cell.value, 'data-light': String(cell.value < 0.55) };
    const onclick = () => visit([a, b], pairs.model);
    const attributes_ = { type: 'button', style: `--v:${cell.value}`, title: text, 'aria-label': text, onclick };
    return make('button', { ...attributes_, ...facts }, cell.training ? '' : '★');
  };
  const rows = names.flatMap((a) => [make('span', {}, label(a)), ...names.map((b) => cellOf(a, b))]);
  grid.replaceChildren(...head, ...rows);
}
