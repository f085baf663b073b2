// @ts-check
// A full server refuses a request, and Gradio's own script swallows the refusal: the visitor must hear of it.

/**
 * What was refused, and what the server said.
 * @typedef {object} Refusal
 * @property {string} event by its name in app/studio.py, app/photo.py or app/compare.py; empty where nobody asked
 * @property {string} text in full, "Please try again …" too
 * @property {string} words without: for what the page tries again by itself
 * @property {number} seconds until then
 */

/** @param {BodyInit | null | undefined} body of a request @returns {string} */
function eventOf(body) {
  if (typeof body !== 'string') return '';
  const { fn_index: index } = JSON.parse(body);
  const event = window.gradio_config?.dependencies?.find((one) => one.id === index);
  return event?.targets[0]?.[1] ?? '';
}

/** @type {(answer: Response, event: string) => Promise<Refusal>} */
async function read(answer, event) {
  const value = await answer.json().catch(() => null);
  const text = typeof value?.detail === 'string' ? value.detail : 'The server is full. Please try again in a moment.';
  const seconds = Number(answer.headers.get('retry-after')) || 20;
  return { event, text, words: text.replace(/ Please try again .*/, ''), seconds };
}

/** @param {number} seconds */
export const inAbout = (seconds) => (seconds === 1 ? 'in about a second' : `in about ${seconds} seconds`);

/** @param {(refusal: Refusal) => void} refused */
export function watchRefusals(refused) {
  const ask = window.fetch.bind(window);
  window.fetch = async (...request) => {
    const answer = await ask(...request);
    if ((answer.status === 429 || answer.status === 503) && answer.url.includes('/gradio_api/'))
      read(answer.clone(), eventOf(request[1]?.body)).then(refused);
    return answer;
  };
}
