// Which screen is shown: three buttons in the bar; the address keeps the choice. The chains rest while nobody sees them.
const SCREENS = ['studio', 'photo', 'compare'];
const app = (window.gibbsJem ??= {});
const tabs = [...element.querySelectorAll('[data-screen]')];
let rested = false;

app.rest = () => {
  if (!app.store?.playing || app.store.status !== 'running') return;
  rested = true;
  document.querySelector('#gj-studio [data-do=toggle]').click();
};
app.resume = () => {
  rested = false;
  const wait = setInterval(() => { // after a rest the last frame must have come
    if (!app.store || app.store.playing) { clearInterval(wait); return; }
    if (app.store.status === 'running' || app.store.status === 'queued') return;
    clearInterval(wait);
    document.querySelector('#gj-studio [data-do=toggle]').click();
  }, 120);
};
app.go = (screen, goOn = true) => {
  const before = document.body.dataset.screen;
  document.body.dataset.screen = screen;
  for (const tab of tabs) tab.setAttribute('aria-current', tab.dataset.screen === screen ? 'page' : 'false');
  const query = new URLSearchParams(location.search);
  if (screen === 'studio') query.delete('screen'); else query.set('screen', screen);
  const text = query.toString().replaceAll('%2C', ',');
  history.replaceState(null, '', location.pathname + (text ? '?' + text : '') + location.hash);
  if (screen !== 'studio') app.rest();
  else if (goOn && rested) app.resume();
  else rested = false;
  if (before && before !== screen) window.scrollTo(0, 0);
  window.dispatchEvent(new CustomEvent('gj-screen', { detail: screen }));
};
for (const tab of tabs) tab.addEventListener('click', () => app.go(tab.dataset.screen));
setInterval(() => { if (document.body.dataset.screen !== 'studio') app.rest(); }, 700); // a page that opens elsewhere
const asked = new URLSearchParams(location.search).get('screen');
app.go(SCREENS.includes(asked) ? asked : 'studio');
