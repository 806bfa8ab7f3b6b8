/** The transport of a recording: its clock, which can be played, paused and set (`WS /transport`). */

import { openSocket } from "../link/reaching.js";

const RETRY_MS = 1_000;
const SEEK_MS = 80;

/** @typedef {{utime: number, kind: string, text: string}} Mark */

export class Transport {
  /** Facts about the recording: name, blueprint, begin, end, marks, notes; null before they are known. */
  about = null;
  playing = false;
  speed = 1;
  #utime = 0;
  #heardAt = 0;
  #socket = null;
  #wanted = null;
  #due = 0;
  #isOpened = true;
  #onChange;

  /** @param {() => void} onChange hears of everything but the passing of time */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  connect() {
    const socket = (this.#socket = openSocket("transport"));
    socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    socket.onclose = () => setTimeout(() => this.connect(), RETRY_MS);
  }

  /** @returns {number} the moment that is shown, µs */
  now() {
    if (this.#wanted !== null) return this.#wanted;
    const passed = this.playing ? (performance.now() - this.#heardAt) * 1000 * this.speed : 0;
    return Math.min(this.about?.end ?? 0, this.#utime + passed);
  }

  toggle() {
    this.#ask({ command: this.playing ? "pause" : "play" });
  }

  /** Go to the next event of a call, or to the one before. */
  step(back = false) {
    this.#ask({ command: "step", back });
  }

  setSpeed(speed) {
    this.#ask({ command: "speed", speed });
  }

  /** Go to a moment, in µs. Of many requests in a row only the newest counts. */
  seek(utime) {
    this.#wanted = Math.round(Math.min(this.about.end, Math.max(this.about.begin, utime)));
    this.#due ||= setTimeout(() => {
      this.#due = 0;
      this.#ask({ command: "seek", utime: this.#wanted });
    }, SEEK_MS);
  }

  /** The newest mark up to now. @returns {Mark|null} */
  get last() {
    const now = this.now();
    return this.about?.marks.findLast((mark) => mark.utime <= now) ?? null;
  }

  /** Start to play when the page is opened, unless somebody has moved through the recording before. */
  #beginOnce() {
    if (this.#isOpened && !this.playing && this.#utime === this.about?.begin) this.toggle();
    this.#isOpened = false;
  }

  #ask(command) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(command));
  }

  #take(message) {
    if (message.type === "recording") this.about = message;
    if (message.type === "transport") {
      this.#utime = message.utime;
      this.#heardAt = performance.now();
      this.playing = message.playing;
      this.speed = message.speed;
      if (!this.#due) this.#wanted = null;
      this.#beginOnce();
    }
    this.#onChange();
  }
}
