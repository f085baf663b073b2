// @ts-check
// Under the hood: one step taken apart, and how it all works.
import { make, setText } from './base.js';
import { detail } from './detail.js';
import { paintPictures } from './explain.js';
import { find, server, settingsToSend } from './store.js';

const box = find('.gj-hood-shown');

/** @param {boolean} all the six pictures too */
export function lookUnderTheHood(all) {
  find('.gj-hood').open = true;
  box.replaceChildren(make('p', { class: 'gj-hint' }, 'Drawing …'));
  server.trigger('hood', { settings: settingsToSend(), place: detail.open ? detail.chain : 0, all });
}

/** @param {{ steps: any[], six: any[] }} reply */
export function showHood(reply) {
  paintPictures(box, reply.six.length ? reply.six : reply.steps);
}

export const refuseHood = () => setText(box, '');
