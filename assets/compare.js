// @ts-check
// The third screen: the paragraph, rows of pictures, tables, the map of pairs, and which plots the server is asked for.
import { make, parts, setText, theme } from './base.js';
import { drawPairs } from './compare_pairs.js';

/** @typedef {{ text: string, interval?: string, from?: string }} Cell */
/** @typedef {{ objective: string, title: string, model?: string, iterations?: number }} Column */
/** @typedef {{ measure: string, average?: string, best: string[], ours: Record<string, Cell>, paper: Record<string, Cell> }} Line */
/** @typedef {{ question: string, best: string[], cells: Record<string, string>, paper: string | null }} Answer */
/** @typedef {{ models: Column[], rows: Answer[], paper: boolean, kinds: string, unlike: string }} Headline */
/** @typedef {{ ours: Column[], paper: Column[], rows: Line[], paper_title: string, source: string, note: string }} Prediction */
/** @typedef {{ measure: string, chains: number | null, cell: Cell }} Figure */
/**
 * What the screen shows (app/compare.py).
 * @typedef {{ order: number, family: string, attribute: string, families: { key: string, title: string }[],
 *   attributes: { name: string, label: string }[], paragraph: string, headline: Headline | null, synthesis: Figure[],
 *   prediction: Prediction, missing: string, pairs: import('./compare_pairs.js').Pairs | null, conditions: string[] }} Reply
 */
/** @typedef {{ condition: number, seed: number, rows: { title: string, images: string[] }[] }} Rows */

const page = (window.gibbsJem ??= {});

/** @param {import('./base.js').Component} component */
export function mount({ element, trigger }) {
  const { find, say } = parts(element);
  // Mounted after this script has run.
  /** @type {(selector: string) => any} */
  const more = (selector) => document.querySelector(`#gj-more ${selector}`);
  /** @type {{ order: number, reply: Reply | null, attribute: string, family: string | null, theme: string, condition: number, seed: number, drawn?: number }} */
  const compare = { order: Date.now(), reply: null, attribute: 'all', family: null, theme: '', condition: 0, seed: 0 };
  const choose = (/** @type {string} */ name) => find(`[data-compare=${name}]`) ?? more(`[data-compare=${name}]`);

  function open() {
    compare.order += 1;
    compare.theme = theme();
    const model = new URLSearchParams(location.search).get('model');
    const { order, family, attribute } = compare;
    trigger('open', { order, family, model, attribute, theme: compare.theme });
  }

  page.onCompare = (/** @type {any} */ reply) => {
    if (reply.kind === 'refused') return say(reply.message, 0);
    if (reply.order !== compare.order) return;
    if (reply.kind === 'rows') paintRows(reply);
    else paint(reply);
  };

  /** @param {Reply} reply */
  function paint(reply) {
    const another = compare.family !== reply.family || !compare.reply;
    Object.assign(compare, { reply, family: reply.family, attribute: reply.attribute });
    listen();
    const families = reply.families.map((one) => [one.key, one.title]);
    fill(choose('family'), families, reply.family);
    const names = reply.attributes.map((one) => [one.name, one.label]).sort((a, b) => a[1].localeCompare(b[1]));
    fill(choose('attribute'), [['all', 'All, averaged'], ...names], reply.attribute);
    setText(find('.gjc-paragraph'), reply.paragraph);
    paintHeadline(reply.headline);
    paintPrediction();
    paintSynthesis(reply.synthesis);
    setText(more('.gjc-missing'), reply.missing);
    more('.gjc-missing').hidden = !reply.missing;
    more('.gjc-none').hidden = reply.prediction.ours.length > 0;
    choose('attribute').parentElement.hidden = !reply.attributes.length;
    drawPairs({ more, pairs: reply.pairs, attributes: reply.attributes, visit });
    find('.gjc-rows').hidden = !reply.conditions.length;
    if (another) {
      Object.assign(compare, { condition: 0, seed: 0 });
      const requests = reply.conditions.map((text, i) => [String(i), text[0].toUpperCase() + text.slice(1)]);
      fill(choose('condition'), requests, '0');
      askRows();
    }
    compare.drawn = performance.now();
  }

  /** @type {(node: HTMLSelectElement, options: string[][], value: string) => void} */
  function fill(node, options, value) {
    node.replaceChildren(...options.map(([key, text]) => make('option', { value: key }, text)));
    node.value = value;
  }

  function askRows() {
    if (!compare.reply?.conditions.length) return;
    find('.gjc-pictures').classList.add('gjc-waiting');
    if (!find('.gjc-pictures').childElementCount)
      find('.gjc-pictures').replaceChildren(make('p', { class: 'gj-hint' }, 'Drawing…'));
    const { order, family, condition, seed } = compare;
    trigger('rows', { order, family, condition, seed });
  }

  /** @param {Rows} reply */
  function paintRows(reply) {
    if (reply.condition !== compare.condition || reply.seed !== compare.seed) return;
    const rows = reply.rows.map((row) =>
      make(
        'div',
        { class: 'gjc-picture-row' },
        make('b', {}, row.title),
        make('div', {}, ...row.images.map((src, i) => make('img', { src, alt: `${row.title}, picture ${i + 1}` }))),
      ),
    );
    find('.gjc-pictures').replaceChildren(...rows);
    find('.gjc-pictures').classList.remove('gjc-waiting');
  }

  /** @param {Headline | null} headline */
  function paintHeadline(headline) {
    find('.gjc-headline').hidden = !headline?.rows.length;
    if (!headline) return;
    setText(find('.gjc-kinds'), headline.kinds);
    setText(find('.gjc-unlike'), headline.unlike);
    find('.gjc-unlike').hidden = !headline.unlike;
    // A soft hyphen lets the longest word break: five columns must fit on a phone.
    const heads = headline.models.map((one) =>
      make('th', { scope: 'col' }, one.title.replace('Supervised', 'Super\u00ADvised')),
    );
    const papers = headline.paper ? [make('th', { scope: 'col', class: 'gjc-paper' }, 'The paper')] : [];
    const rows = headline.rows.map((row) => {
      const cells = headline.models.map(({ objective }) => {
        const best = row.best.includes(objective) ? 'gjc-best' : '';
        return make('td', { class: best }, make('b', {}, row.cells[objective] ?? '–'));
      });
      const theirs = headline.paper ? [make('td', { class: 'gjc-paper' }, row.paper ?? '–')] : [];
      return make('tr', {}, make('th', { scope: 'row' }, row.question), ...cells, ...theirs);
    });
    const head = make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, ''), ...heads, ...papers));
    find('[data-table=headline]').replaceChildren(head, make('tbody', {}, ...rows));
  }

  /** @type {(cell?: Cell, kind?: string) => HTMLElement} */
  const figure = (cell, kind = '') =>
    make(
      'td',
      { class: kind, 'data-from': cell?.from },
      make('b', {}, cell ? cell.text : '–'),
      cell?.interval ? make('small', {}, cell.interval) : null,
    );

  function paintPrediction() {
    const { prediction } = /** @type {Reply} */ (compare.reply);
    const average = choose('average').value;
    const ours = prediction.ours.map((one) => {
      const count = one.iterations ? `${one.iterations.toLocaleString('en')} iterations` : '';
      const small = [one.model, count].filter(Boolean).map((text) => make('small', {}, text));
      return make('th', { scope: 'col' }, one.title, ...small);
    });
    const paper = prediction.paper.map((one) =>
      make('th', { scope: 'col', class: 'gjc-paper' }, one.title, make('small', {}, 'the paper')),
    );
    const rows = prediction.rows
      .filter((row) => !row.average || row.average === average)
      .map((row) => {
        const mine = prediction.ours.map(({ objective }) =>
          figure(row.ours[objective], row.best.includes(objective) ? 'gjc-best' : ''),
        );
        const theirs = prediction.paper.map(({ objective }) => figure(row.paper[objective], 'gjc-paper'));
        return make('tr', {}, make('th', { scope: 'row' }, row.measure), ...mine, ...theirs);
      });
    const head = make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'Measure'), ...ours, ...paper));
    more('[data-table=prediction]').replaceChildren(head, make('tbody', {}, ...rows));
    const title = prediction.paper_title && `${prediction.paper_title}. ${prediction.source}.`;
    setText(more('.gjc-note'), [title, prediction.note].filter(Boolean).join(' '));
  }

  /** @param {Figure[]} rows */
  function paintSynthesis(rows) {
    more('.gjc-synthesis').hidden = !rows.length;
    const heads = ['Measure', 'Value', 'Pictures'].map((text) => make('th', { scope: 'col' }, text));
    const body = rows.map((row) => {
      const measure = row.measure[0].toUpperCase() + row.measure.slice(1);
      const count = row.chains == null ? '' : row.chains.toLocaleString('en');
      return make('tr', {}, make('th', { scope: 'row' }, measure), figure(row.cell), make('td', {}, count));
    });
    more('[data-table=synthesis]').replaceChildren(
      make('thead', {}, make('tr', {}, ...heads)),
      make('tbody', {}, ...body),
    );
  }

  /** @type {(wanted: string[], model: string) => void} */
  function visit(wanted, model) {
    page.go('studio', false);
    page.open({ model, with: wanted, without: [], start: null, compare: 'none' });
    page.resume();
  }

  let listening = false;
  function listen() {
    if (listening) return;
    listening = true;
    choose('attribute').addEventListener('change', (/** @type {any} */ event) => {
      compare.attribute = event.target.value;
      open();
    });
    choose('average').addEventListener('change', paintPrediction);
    more('.gjc-curves').addEventListener('toggle', (/** @type {any} */ event) => {
      document.body.classList.toggle('gjc-open', event.target.open);
      window.dispatchEvent(new Event('resize')); // plots that were hidden have no width yet
    });
  }

  choose('family').addEventListener('change', (/** @type {any} */ event) => {
    Object.assign(compare, { family: event.target.value, attribute: 'all', reply: null });
    find('.gjc-pictures').replaceChildren();
    open();
  });
  choose('condition').addEventListener('change', (/** @type {any} */ event) => {
    compare.condition = Number(event.target.value);
    askRows();
  });
  choose('seed').addEventListener('click', () => {
    compare.seed += 1;
    askRows();
  });
  window.addEventListener('gj-screen', (event) => {
    if (/** @type {CustomEvent} */ (event).detail === 'compare' && (!compare.reply || compare.theme !== theme()))
      open();
  });
  new MutationObserver(() => {
    if (compare.reply && document.body.dataset.screen === 'compare' && compare.theme !== theme()) open();
  }).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  if (document.body.dataset.screen === 'compare') open();
  page.compareScreen = compare;
}
