/** The live topics of a run (`WS /live`): pictures, scans and other data that are too large for the monitor. */

import { authorization, openSocket, pauseMs } from "./reaching.js";

const QUIET_MS = 10_000;

/**
 * A frame's header: `topic`, `type`, `kind`, `robot`, `utime`, `stamp`, `number`, `dropped`, and fields of its kind.
 * @typedef {{topic: string, kind: string, utime: number, stamp: number|null, number: number, dropped: number}} Header
 * @typedef {(header: Header, payload: ArrayBuffer|null) => (Promise<void>|void)} Taker
 */

/** Watches topics over one socket, which is open only while something is watched and the tab can be seen. */
export class Live {
  /** The newest list of the topics that can be watched. */
  topics = [];
  /** Messages per second by topic, as far as they are counted. */
  rates = {};
  /** Reasons why topics can't be shown, by topic, in the bridge's words. */
  errors = {};
  #token;
  #socket = null;
  #tries = 0;
  #retry = 0;
  #quiet = 0;
  #listed = false;
  #asking = false;
  /** The takers of frames by topic, each with the maximum rate that it wants, in frames per second. */
  #takers = new Map();
  #listeners = new Set();
  #says = false;

  /** @param {{token: () => string}} given */
  constructor({ token }) {
    this.#token = token;
    document.addEventListener("visibilitychange", () => this.#settle());
  }

  /** Call `listener` with the list of topics: now if it is known, and whenever it changes. */
  onTopics(listener) {
    this.#listeners.add(listener);
    if (this.#listed) listener(this.topics);
    else this.#askForTopics();
    return () => this.#listeners.delete(listener);
  }

  /**
   * Take frames of a topic. After each, the newest one by then comes once all who take the topic are done with it.
   * @param {Taker} take @param {{maxHz?: number}} options @returns {() => void} ends it
   */
  watch(topic, take, { maxHz = Infinity } = {}) {
    const taker = { take, maxHz };
    if (!this.#takers.has(topic)) this.#takers.set(topic, new Set());
    this.#takers.get(topic).add(taker);
    this.#settle();
    return () => {
      const takers = this.#takers.get(topic);
      takers?.delete(taker);
      if (takers?.size === 0) this.#takers.delete(topic);
      this.#settle();
    };
  }

  get #wanted() {
    return this.#takers.size > 0 && !document.hidden;
  }

  /** Open, close or update the connection, so that it fits what is watched. */
  #settle() {
    if (!this.#wanted) this.#close();
    else if (this.#socket) this.#sayWhat();
    else if (!this.#retry) this.#open();
  }

  #open() {
    const socket = (this.#socket = openSocket("live", this.#token()));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#sayWhat();
    socket.onclose = () => this.#lost(socket);
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#tries = 0;
      this.#watchForSilence(socket);
      if (typeof data === "string") this.#text(JSON.parse(data));
      else this.#frame(socket, data);
    };
    this.#watchForSilence(socket);
  }

  #close() {
    clearTimeout(this.#retry);
    clearTimeout(this.#quiet);
    this.#retry = 0;
    this.#tries = 0;
    const socket = this.#socket;
    this.#socket = null;
    // Browsers log an error if a socket is closed before it is open.
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
    this.rates = {};
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    const tries = this.#tries + 1;
    this.#close();
    this.#tries = tries;
    this.#retry = setTimeout(() => {
      this.#retry = 0;
      this.#settle();
    }, pauseMs(tries));
  }

  /** Take the connection as lost after a silence: rates come every second while anything gets through. */
  #watchForSilence(socket) {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#lost(socket), QUIET_MS);
  }

  /** Send all that is watched, once for all changes that are made at this moment. */
  #sayWhat() {
    if (this.#says) return;
    this.#says = true;
    queueMicrotask(() => {
      this.#says = false;
      if (this.#socket?.readyState !== WebSocket.OPEN) return;
      const watch = {};
      for (const [topic, takers] of this.#takers) {
        const most = Math.max(...[...takers].map(({ maxHz }) => maxHz));
        watch[topic] = Number.isFinite(most) ? { max_hz: most } : {};
      }
      this.#socket.send(JSON.stringify({ watch }));
    });
  }

  #text(message) {
    if (message.type === "topics") this.#list(message.topics);
    else if (message.type === "rates") this.rates = message.hz;
    else if (message.topic) this.errors[message.topic] = message.text;
    else console.warn(message.text);
  }

  async #frame(socket, data) {
    const length = new DataView(data).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
    const payload = data.byteLength > 4 + length ? data.slice(4 + length) : null;
    delete this.errors[header.topic];
    const takers = [...(this.#takers.get(header.topic) ?? [])];
    await Promise.all(takers.map(({ take }) => taken(take, header, payload)));
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ seen: header.topic }));
  }

  #list(topics) {
    this.topics = topics;
    this.#listed = true;
    for (const listener of this.#listeners) listener(topics);
  }

  /** Fetch the list of topics without a socket, for those who choose from it what to watch. */
  async #askForTopics() {
    if (this.#asking) return;
    this.#asking = true;
    for (let tries = 1; this.#listeners.size > 0 && !this.#listed; tries += 1) {
      try {
        const headers = authorization(this.#token());
        const answer = await fetch("live", { headers, signal: AbortSignal.timeout(QUIET_MS) });
        if (answer.ok) this.#list((await answer.json()).topics);
      } catch {
        // The bridge does not answer; the page says so elsewhere.
      }
      if (!this.#listed) await new Promise((resolve) => setTimeout(resolve, pauseMs(tries)));
    }
    this.#asking = false;
  }
}

/** Give a frame to a taker. An error of it is reported, and does not affect the others. */
async function taken(take, header, payload) {
  try {
    await take(header, payload);
  } catch (error) {
    reportError(error);
  }
}
