// @ts-check
// A picture from the webcam: it goes the same way as a file.
import { make } from './base.js';

/** @param {{ find: (selector: string) => any, say: (text: string, seconds?: number) => void, send: (file: Blob | null) => void }} parts */
export function mountCamera({ find, say, send }) {
  const camera = find('.gjp-camera');
  const video = camera.querySelector('video');

  async function webcam() {
    try {
      video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'user' }, audio: false });
      camera.hidden = false;
      await video.play();
    } catch {
      say('The webcam is not available. Allow it in your browser, or choose a file.');
    }
  }

  function off() {
    for (const track of video.srcObject?.getTracks() ?? []) track.stop();
    video.srcObject = null;
    camera.hidden = true;
  }

  function snap() {
    const sheet = make('canvas', { width: video.videoWidth, height: video.videoHeight });
    sheet.getContext('2d').drawImage(video, 0, 0);
    off();
    sheet.toBlob((/** @type {Blob | null} */ blob) => send(blob), 'image/jpeg', 0.95);
  }

  return { webcam, off, snap };
}
