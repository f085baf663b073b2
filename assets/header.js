// Light or dark by hand: Gradio's own class on the body, kept for the next visit.
const dark = (on) => document.body.classList.toggle('dark', on);
const kept = localStorage.getItem('gibbs-jem-theme');
if (kept && !new URLSearchParams(location.search).has('__theme')) dark(kept === 'dark');
element.querySelector('.gj-theme').addEventListener('click', () => {
  const now = !document.body.classList.contains('dark');
  dark(now);
  localStorage.setItem('gibbs-jem-theme', now ? 'dark' : 'light');
});
