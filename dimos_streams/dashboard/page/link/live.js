/** The live topics of a run: pictures, scans and whatever else is too much for the monitor (`WS /live`). */

const RETRY_MS = { first: 500, longest: 10_000 };
const QUIET_MS = 10_000;

/**
 * A frame's header: `topic`, `type`, `kind`, `robot`, `utime`, `stamp`, `number`, `dropped`, and what its kind adds.
 * @typedef {{topic: string, kind: string, utime: number, stamp: number|null, number: number, dropped: number}} Header
 * @typedef {(header: Header, payload: ArrayBuffer|null) => (Promise<void>|void)} Taker
 */

/** Watches topics over one socket, which is open only while something is watched and the tab can be seen. */
export class Live {
  /** The newest list of what can be watched. */
  topics = [];
  /** Messages a second, by topic, as far as they are counted. */
  rates = {};
  /** Why a topic can't be shown, by topic, in the bridge's words. */
  errors = {};
  #token;
  #socket = null;
  #tries = 0;
  #retry = 0;
  #quiet = 0;
  #listed = false;
  #asking = false;
  /** What is watched: by topic those who take its frames, each with the most frames a second that it wants. */
  #takers = new Map();
  #listeners = new Set();
  #says = false;

  /** @param {{token: () => string}} given */
  constructor({ token }) {
    this.#token = token;
    document.addEventListener("visibilitychange", () => this.#settle());
  }

  /** Call `listener` with the list of topics, now if it is known, and whenever it is another one. */
  onTopics(listener) {
    this.#listeners.add(listener);
    if (this.#listed) listener(this.topics);
    else this.#askForTopics();
    return () => this.#listeners.delete(listener);
  }

  /**
   * Take the frames of a topic, the newest one first. The next one comes when all who take it are done with this one.
   * @param {string} topic
   * @param {Taker} take
   * @param {{maxHz?: number}} options
   * @returns {() => void} ends it
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

  /** Have socket and subscription be what is wanted. */
  #settle() {
    if (!this.#wanted) this.#close();
    else if (this.#socket) this.#sayWhat();
    else if (!this.#retry) this.#open();
  }

  #open() {
    const url = new URL("live", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    if (this.#token()) url.searchParams.set("token", this.#token());
    const socket = (this.#socket = new WebSocket(url));
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
    // Browsers complain of a socket that is closed before it is open.
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
    }, pause(tries));
  }

  /** Rates come every second: after a while without any, nothing comes through any more. */
  #watchForSilence(socket) {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#lost(socket), QUIET_MS);
  }

  /** Say once what all want together, after all who begin or end now have said so. */
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

  /** Without a socket: somebody wants to know what there is, to choose what to watch. */
  async #askForTopics() {
    if (this.#asking) return;
    this.#asking = true;
    for (let tries = 1; this.#listeners.size > 0 && !this.#listed; tries += 1) {
      try {
        const token = this.#token();
        const headers = token ? { Authorization: `Bearer ${token}` } : {};
        const answer = await fetch("live", { headers, signal: AbortSignal.timeout(QUIET_MS) });
        if (answer.ok) this.#list((await answer.json()).topics);
      } catch {
        // The bridge is not there; the page says so.
      }
      if (!this.#listed) await new Promise((resolve) => setTimeout(resolve, pause(tries)));
    }
    this.#asking = false;
  }
}

/** What one taker does wrong is told, and costs the others nothing. */
async function taken(take, header, payload) {
  try {
    await take(header, payload);
  } catch (error) {
    reportError(error);
  }
}

function pause(tries) {
  return Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** (tries - 1));
}
