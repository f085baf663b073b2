// @ts-check
// What crosses the wire between this page and app/studio.py, app/live.py and app/frames.py, and how it is unpacked.
import { bytes, floats } from './base.js';

/**
 * A row of the table of settings (app/settings.py).
 * @typedef {object} Row
 * @property {string} key
 * @property {'choice' | 'whole' | 'number' | 'names' | 'strengths' | 'rows' | 'text'} kind
 * @property {string} label
 * @property {any} default
 * @property {number} low
 * @property {number} high
 * @property {string[]} choices
 * @property {boolean} restarts a new value begins new chains
 * @property {boolean} own empty: as the model suggests
 * @property {string | null} only the kind of model that has it
 * @property {string} help
 * @property {string} place the panel that shows it
 * @property {boolean} shared whether a link carries it
 */
/** @typedef {{ name: string, label: string, yes: string, no: string }} Attribute */
/**
 * What the page knows of a model (app/catalog.py).
 * @typedef {object} Model
 * @property {string} name
 * @property {string} title
 * @property {string} label of all models of the same data
 * @property {string} kind how it was trained, in words
 * @property {string} noun what its pictures show
 * @property {number} size
 * @property {string[]} names
 * @property {{ title: string, names: Attribute[] }[]} groups
 * @property {Record<string, any>} sampling
 * @property {boolean} levels whether it knows noise levels
 * @property {Record<string, string[]>} exclusive what cannot be true beside an attribute
 * @property {string[]} rivals models that can stand beside it
 * @property {string[]} family models of the same data, the first to be shown first
 * @property {string[]} starts
 * @property {{ label: string, values: { with?: string[], without?: string[] } }[]} presets
 * @property {string | null} cover
 * @property {string} credit
 */
/**
 * The visitor's choices, by the keys of the table.
 * @typedef {{ model: string, with: string[], without: string[], strengths: Record<string, number>, compare: string,
 *   beside: string | null, chains: number, seed: number, speed: number, pause: number, moving: number, view: string,
 *   locked: number[], walk: string } & Record<string, any>} Settings
 */
/**
 * What the visitor wants now: the server's run reads the newest one at every step.
 * @typedef {{ order: number, run: string, playing: boolean, fresh: number, fps: number, settings: object }} Letter
 */
/**
 * One column of chains in a frame. The arrays are little-endian bytes in base64, row by row.
 * @typedef {object} Lane
 * @property {string} title
 * @property {string} src the pictures as one sheet
 * @property {number} n
 * @property {number} size of a picture, in pixels
 * @property {number} columns of the sheet
 * @property {string} [p] uint8 (n, K): P(attribute | image) times 255
 * @property {string} [energy] float32 (steps, n)
 * @property {string} [grad] float32 (steps, n)
 * @property {string} [y] bits (steps, n, K), each chain's rounded up to whole bytes
 * @property {Uint8Array | null} [sure] p, unpacked
 * @property {number} [attributes] K
 */
/**
 * One message of a run.
 * @typedef {object} Frame
 * @property {string} run
 * @property {'running' | 'paused' | 'settled' | 'resting' | 'best' | 'error'} status
 * @property {string} [message]
 * @property {number} order of the letter that it was made under
 * @property {number} fresh
 * @property {number} epoch other chains have another
 * @property {number} step
 * @property {number[]} steps taken since the last frame
 * @property {number[]} levels the noise level of each
 * @property {number} level
 * @property {Lane[]} lanes
 * @property {string[]} with
 * @property {string[]} without
 * @property {string} text
 * @property {number} rate steps per second
 * @property {number} at the server's clock, in seconds
 * @property {[number, number]} done steps of this descent, and all of them
 * @property {number} left changes of a link that are still to be taken
 * @property {[number, number]} [progress] of keep-the-best
 * @property {string} [digest] only of a still frame, like all that follow
 * @property {string} [walk]
 * @property {string} [why]
 * @property {number} [best_of]
 * @property {number | null} [state]
 * @property {number[]} [states]
 */
/** @typedef {{ step: number, level: number, energy: Float32Array, grad: Float32Array, labels: Uint8Array }} Point */

/**
 * What a lane tells of each step since the last frame.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} K
 * @returns {Point[]}
 */
export function unpack(frame, lane, K) {
  if (!lane.energy) return [];
  const energy = floats(lane.energy);
  const grad = floats(lane.grad ?? '');
  const labels = bytes(lane.y ?? '');
  const row = Math.ceil(K / 8) * lane.n;
  return frame.steps.map((step, t) => ({
    step,
    level: frame.levels[t],
    energy: energy.subarray(t * lane.n, (t + 1) * lane.n),
    grad: grad.subarray(t * lane.n, (t + 1) * lane.n),
    labels: labels.subarray(t * row, (t + 1) * row),
  }));
}

/**
 * One label of one chain.
 * @param {Uint8Array} row
 * @param {number} chain
 * @param {number} k
 * @param {number} K
 */
export const bit = (row, chain, k, K) => (row[chain * Math.ceil(K / 8) + (k >> 3)] >> (7 - (k & 7))) & 1;

/**
 * The mean probability of each attribute over the chains of a lane.
 * @param {Lane} lane
 * @param {number} K
 */
export function meansOf(lane, K) {
  const mean = new Float32Array(K);
  const { sure, n } = lane;
  if (sure) for (let i = 0; i < n; i++) for (let k = 0; k < K; k++) mean[k] += sure[i * K + k] / (255 * n);
  return mean;
}
