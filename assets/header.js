// @ts-check
// The bar: which screen is shown, and light or dark. Screens are entries of the browser's history: Back goes back.
const SCREENS = ['studio', 'photo', 'compare'];
const KEPT = 'gibbs-jem-theme';
const page = (window.gibbsJem ??= {});
const ICONS = {
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5',
};
let rested = false; // the pictures rest while nobody sees them

/** @type {(on: boolean, button: HTMLElement) => void} */
function dark(on, button) {
  document.body.classList.toggle('dark', on);
  const words = on ? 'Light mode' : 'Dark mode';
  button.title = words;
  button.querySelector('path')?.setAttribute('d', on ? ICONS.sun : ICONS.moon);
  const span = button.querySelector('span');
  if (span) span.textContent = words;
}

/** @param {HTMLElement} element */
function listenToTheme(element) {
  const button = /** @type {HTMLElement} */ (element.querySelector('.gj-theme'));
  const kept = localStorage.getItem(KEPT);
  const told = new URLSearchParams(location.search).has('__theme');
  dark(kept && !told ? kept === 'dark' : document.body.classList.contains('dark'), button);
  button.addEventListener('click', () => {
    const now = !document.body.classList.contains('dark');
    dark(now, button);
    localStorage.setItem(KEPT, now ? 'dark' : 'light');
  });
}

page.rest = () => {
  if (!page.store?.playing || page.store.status !== 'running') return;
  rested = true;
  page.pause();
};
page.resume = () => {
  rested = false;
  const wait = setInterval(() => {
    // after a rest the last frame must have come
    if (!page.store || page.store.playing) clearInterval(wait);
    else if (!['running', 'queued'].includes(page.store.status)) {
      clearInterval(wait);
      if (page.store.status !== 'settled') page.begin('run');
    }
  }, 120);
};

const screenNow = () => {
  const asked = new URLSearchParams(location.search).get('screen') ?? '';
  return SCREENS.includes(asked) ? asked : 'studio';
};

/** @param {string} screen */
function addressOf(screen) {
  const query = new URLSearchParams(location.search);
  if (screen === 'studio') query.delete('screen');
  else query.set('screen', screen);
  const text = query.toString().replaceAll('%2C', ',');
  return location.pathname + (text ? `?${text}` : '') + location.hash;
}

/** @type {(element: HTMLElement, screen: string, goOn: boolean) => void} */
function show(element, screen, goOn) {
  const before = document.body.dataset.screen;
  document.body.dataset.screen = screen;
  for (const tab of element.querySelectorAll('[data-screen]'))
    tab.setAttribute('aria-current', /** @type {HTMLElement} */ (tab).dataset.screen === screen ? 'page' : 'false');
  if (screen !== 'studio') page.rest();
  else if (goOn && rested) page.resume();
  else rested = false;
  if (before && before !== screen) window.scrollTo(0, 0);
  window.dispatchEvent(new CustomEvent('gj-screen', { detail: screen }));
}

/** @param {import('./base.js').Component} component */
export function mount({ element }) {
  listenToTheme(element);
  page.go = (/** @type {string} */ screen, goOn = true) => {
    if (screen !== screenNow()) history.pushState({ screen }, '', addressOf(screen));
    show(element, screen, goOn);
  };
  for (const tab of element.querySelectorAll('[data-screen]'))
    tab.addEventListener('click', () => page.go(/** @type {HTMLElement} */ (tab).dataset.screen));
  window.addEventListener('popstate', () => {
    if (page.store?.models.length) page.writeAddress(); // what is on screen now, not when the entry was made
    show(element, screenNow(), true);
  });
  // A page that opens on another screen begins to draw before it knows that nobody looks.
  setInterval(() => {
    if (document.body.dataset.screen !== 'studio') page.rest();
  }, 700);
  show(element, screenNow(), true);
}
