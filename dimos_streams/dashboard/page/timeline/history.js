/** Reads the journal backwards, in pages of `GET /events`, as far as the time in view and no further. */

import { keyOf } from "../calls/families.js";

const PAGE = 500;
const AT_ONCE = 12;
const CAUGHT_UP_WITHIN = 40;
const AGAIN_MS = 3_000;

/** @typedef {(path: string) => Promise<Response>} Get */

export class History {
  /** True while pages are read. */
  busy = false;
  /** The reason why no more can be read, empty if there is none. */
  problem = "";
  #log;
  #get;
  #changed;
  #notBefore = 0;
  /** What `catchUp` was given while pages were read; null if it was not called meanwhile. */
  #owed = null;
  #isGone = false;
  #isStopped = false;

  /** @param {import("./calls.js").CallLog} log @param {Get} get @param {() => void} changed */
  constructor(log, get, changed) {
    this.#log = log;
    this.#get = get;
    this.#changed = changed;
  }

  /** Ask for no more pages, as nobody looks at them any longer. */
  stop() {
    this.#isStopped = true;
  }

  /** True if there may be older events than those that are known, and it is of use to ask for them. */
  get hasMore() {
    return this.#log.beginning === null && !this.#log.isFull && !this.#isGone && !this.#isStopped;
  }

  /** Read until everything from a time on is known. It may be called repeatedly. @param {number} utime µs */
  async reach(utime) {
    const isKnown = () => this.#log.knownFrom <= utime;
    if (this.busy || isKnown() || !this.hasMore || performance.now() < this.#notBefore) return;
    await this.#read(async () => {
      for (let pages = 0; pages < AT_ONCE && !isKnown() && this.hasMore; pages += 1) {
        const { entries, before } = await this.#page(this.#log.since);
        this.#log.takePage(entries, before);
        this.#changed();
      }
    });
  }

  /**
   * Read the events that came while nothing was heard, from the newest back to those that are known.
   * @param {() => number} now µs
   * @param {boolean} isSame whether it can be no other journal
   */
  async catchUp(now, isSame) {
    if (this.busy) {
      this.#owed = [now, isSame];
      return;
    }
    const { newest, newestEvent } = this.#log;
    if (newest === 0 || this.#isStopped) return;
    let isRead = false;
    await this.#read(async () => {
      const found = [];
      let before = Infinity;
      for (let pages = 0; before !== null && before > newest && pages < CAUGHT_UP_WITHIN; pages += 1) {
        const page = await this.#page(before);
        found.unshift(...page.entries);
        before = page.before;
        if (this.#isStopped) return;
      }
      const isReached = before === null || before <= newest;
      const isKnown = ({ offset, event }) => offset === newest && keyOf(event) === newestEvent;
      if (isReached && !isSame && !found.some(isKnown)) this.#log.beginAnew(now());
      for (const { offset, event } of found) this.#log.take(offset, event);
      if (!isReached) this.#log.missed(now(), "more happened than is shown here");
      isRead = true;
    });
    if (!isRead && !this.#isStopped) this.#log.missed(now(), "what happened meanwhile can't be read");
  }

  async #read(work) {
    this.busy = true;
    this.#changed();
    try {
      await work();
      this.problem = "";
    } catch (error) {
      this.problem = error.message;
      this.#notBefore = performance.now() + AGAIN_MS;
    } finally {
      this.busy = false;
      this.#changed();
    }
    const owed = this.#owed;
    this.#owed = null;
    if (owed !== null) await this.catchUp(...owed);
  }

  /** @returns {Promise<{entries: object[], before: number|null}>} and from which offset on they were looked for */
  async #page(before) {
    const response = await this.#get(`events?limit=${PAGE}${before === Infinity ? "" : `&before=${before}`}`);
    this.#isGone = response.status === 404;
    if (!response.ok) throw new Error(`what was said earlier can't be read: ${response.status} ${response.statusText}`);
    const next = /[?&]before=(\d+)>?[^,]*;\s*rel="next"/.exec(response.headers.get("Link") ?? "");
    return { entries: await response.json(), before: next ? Number(next[1]) : null };
  }
}
