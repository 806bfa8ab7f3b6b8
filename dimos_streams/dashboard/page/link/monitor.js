/** The connection to `WS /monitor`. */

import { parseMessage } from "./exact_json.js";
import { authorization, openSocket, pauseMs } from "./reaching.js";

const ANSWER_MS = 15_000;
const QUIET_MS = 10_000;
const PROBE_MS = 5_000;
/** The code with which the bridge closes a connection at its own end, in order. */
const GOING_AWAY = 1001;

/** A WebSocket that is opened again whenever it is lost. */
export class Monitor {
  /** The state of the connection: `connecting`, `live`, `lost`, `ended` if the bridge has ended in order, `refused`, or
   * `token` if a (right) token is missing. */
  status = "connecting";
  /** The reason why the bridge refuses the connection, in its words. */
  refusal = "";
  /** Time at which the connection was lost, or ended; null if there never was one. */
  since = null;
  #tries = 0;
  #number = 0;
  #socket = null;
  #retry = 0;
  #quiet = 0;
  #asked = new Map();

  /** @param {(message: object) => void} onMessage @param {() => void} onChange hears of changes of `status` */
  constructor(onMessage, onChange) {
    this.onMessage = onMessage;
    this.onChange = onChange;
  }

  get token() {
    return sessionStorage.getItem("token") ?? "";
  }

  set token(value) {
    sessionStorage.setItem("token", value);
  }

  connect() {
    clearTimeout(this.#retry);
    this.#socket?.close();
    const socket = (this.#socket = openSocket("monitor", this.token));
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#heard(event);
    socket.onclose = ({ code }) => this.#lost(socket, code === GOING_AWAY);
  }

  /** Send a command, and return its `reply` or `error`; there always is one. */
  ask(command) {
    if (this.status !== "live") return Promise.resolve({ type: "error", text: "there is no connection" });
    const id = ++this.#number;
    const socket = this.#socket;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#lost(socket), ANSWER_MS);
      this.#asked.set(id, { resolve, timer });
      socket.send(JSON.stringify({ ...command, id }));
    });
  }

  /**
   * Send an order in an HTTP request of its own: it waits for no earlier command, and needs no live connection.
   * @returns {Promise<object>} the bridge's report, or a problem
   */
  async order(path, body) {
    const headers = { "Content-Type": "application/json", ...authorization(this.token) };
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
      return await response.json();
    } catch (error) {
      return { detail: `NOT done, the bridge does not answer: ${error.message}` };
    }
  }

  /** Send a plain request, with the token. @returns {Promise<Response>} */
  get(path, options = {}) {
    return fetch(path, { headers: authorization(this.token), cache: "no-store", ...options });
  }

  /** @returns {boolean} whether somebody waits for this answer */
  answer(message) {
    const asked = this.#asked.get(message.id);
    if (!asked) return false;
    clearTimeout(asked.timer);
    this.#asked.delete(message.id);
    asked.resolve(message);
    return true;
  }

  #opened() {
    this.#tries = 0;
    this.#become("live");
    this.#watch();
  }

  #heard(event) {
    this.#watch();
    this.onMessage(parseMessage(event.data));
  }

  /** Ask the bridge after a silence: either nothing changes, or nothing gets through any more. */
  #watch() {
    clearTimeout(this.#quiet);
    const socket = this.#socket;
    this.#quiet = setTimeout(async () => {
      const isThere = (await this.#probe()) !== null;
      if (socket !== this.#socket) return;
      if (isThere) this.#watch();
      else this.#lost(socket);
    }, QUIET_MS);
  }

  async #lost(socket, hasEnded = false) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    socket.close();
    clearTimeout(this.#quiet);
    const wasLive = this.status === "live";
    if (wasLive) this.since = new Date();
    // What has ended stays so until a bridge is there again, which is looked for all the same.
    this.#become(hasEnded || this.status === "ended" ? "ended" : "lost");
    for (const id of [...this.#asked.keys()]) {
      this.answer({ id, type: "error", text: "the connection was lost; perhaps it was carried out" });
    }
    if (!wasLive && (await this.#isRefused())) return;
    if (this.#socket === null) this.#connectLater();
  }

  #connectLater() {
    this.#tries += 1;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.connect(), pauseMs(this.#tries) * (0.5 + Math.random() / 2));
  }

  /** Find out why the connection failed. Return whether a token is missing, so that trying again is of no use. */
  async #isRefused() {
    let response = await this.#probe();
    // All gets through but the socket: what a plain request gets at its path says what a socket needs.
    if (response?.ok && this.since === null) response = await this.#probe("monitor");
    if (response === null || response.ok || this.#socket !== null) return false;
    this.refusal = await detailOf(response);
    this.#become(response.status === 401 ? "token" : "refused");
    return response.status === 401;
  }

  /** Return the answer to a plain request, null if there is none. Browsers hide why a WebSocket was refused. */
  async #probe(path = "healthz") {
    try {
      return await this.get(path, { signal: AbortSignal.timeout(PROBE_MS) });
    } catch {
      return null;
    }
  }

  #become(status) {
    this.status = status;
    this.onChange();
  }
}

/** Return what a refusal says; a proxy's own may be no JSON. @param {Response} response @returns {Promise<string>} */
async function detailOf(response) {
  try {
    return (await response.json()).detail;
  } catch {
    return `${response.status} ${response.statusText}`.trim();
  }
}
