/** The page's session with a run: its reports, notices, and the user's choices of what to see. */

import { drawSoon } from "./pace.js";
import { RunClock } from "./clock.js";
import { counted, namespaceOf } from "./format.js";
import { Live } from "./link/live.js";
import { Monitor } from "./link/monitor.js";
import { Orders } from "./orders.js";
import { agentsOf } from "./snapshot.js";
import { Run } from "./store.js";
import { clipped } from "./texts.js";
import { Transport } from "./transport/link.js";
import { Pauses } from "./unseen.js";

const NOTICE_MS = 6_000;
const MAX_NOTICES = 4;
const OLDER_EVENTS = 500;

/** What every component is given as `session`: it reads the session while it renders, and is rendered again when that has changed. */
export class Session {
  run = new Run();
  clock = new RunClock();
  monitor = new Monitor((message) => this.take(message), () => this.#linkChanged());
  live = new Live({ token: () => this.monitor.token });
  /** The id of the call that is highlighted everywhere. @type {string|null} */
  selected = null;
  helps = false;
  notices = [];
  /** The clock of a recording, null for a run. @type {Transport|null} */
  transport = null;
  /** The number of snapshots of a recording so far; with each, the views begin anew. */
  era = 0;
  #chosen = "";
  #count = 0;
  #due = 0;
  #hasRead = false;
  #orders = new Orders(this.monitor, (...notice) => this.notify(...notice), (id) => this.#openCall(id));
  #pauses = new Pauses();
  #listener = () => {};
  #hearers = new Set();

  /** @param {{readOnly: boolean}} given true if a recording is looked at, to which no orders can be given */
  constructor({ readOnly }) {
    this.readOnly = readOnly;
    if (readOnly) this.transport = new Transport(() => this.changedNow());
  }

  start() {
    this.#takeToken();
    this.monitor.connect();
    this.transport?.connect();
  }

  /** Call `listener` when something has changed. */
  listen(listener) {
    this.#listener = listener;
    return () => (this.#listener = () => {});
  }

  /** The monitor's snapshot, a new object at each change; null before the first. @returns {object|null} */
  get state() {
    return this.run.state;
  }

  /** True if orders can be given. */
  get connected() {
    return this.monitor.status === "live" && !this.readOnly;
  }

  take(message) {
    switch (message.type) {
      case "snapshot":
        this.clock.heard(message.utime);
        if (this.transport) this.#beginEra();
        this.run.begin();
        this.run.show(message.snapshot);
        this.#readOlder();
        break;
      case "change":
        this.clock.heard(message.utime);
        this.run.show({ ...this.state, ...message.change });
        break;
      case "event":
        this.run.agentEvent(message.event);
        break;
      case "call":
        this.run.callEvent(message.event, message.offset);
        break;
      case "gap":
        this.run.note("gap", `${counted(message.lost, "event")} came too fast and are not shown here`, this.now());
        break;
      case "reply":
      case "error":
        if (!this.monitor.answer(message)) this.notify(message.text, message.type === "error");
        break;
    }
    this.notices = this.notices.filter(({ ends }) => ends === null || this.#openCall(ends));
    if (this.state) this.#pauses.take(this.state.agents);
    for (const hearer of this.#hearers) hearer(message);
    this.changed();
  }

  /** Read the newest events of before the connection, once for each. Without them the list has only what it hears. */
  async #readOlder() {
    if (this.#hasRead || this.readOnly) return;
    this.#hasRead = true;
    try {
      const answer = await this.monitor.get(`events?limit=${OLDER_EVENTS}`);
      if (!answer.ok) return;
      this.run.takeOlder(await answer.json());
      this.changed();
    } catch {
      // The bridge does not answer; the page says so elsewhere.
    }
  }

  /** Call `hearer` with each message of the monitor, once the run has taken it. @returns {() => void} ends that */
  hear(hearer) {
    this.#hearers.add(hearer);
    return () => this.#hearers.delete(hearer);
  }

  /** Call the listener with what is drawn next, in a hidden tab soon, once for all changes. */
  changed() {
    if (document.hidden) this.#due ||= setTimeout(this.#show, 1000);
    else drawSoon(this.#show);
  }

  #show = () => this.changedNow();

  #linkChanged() {
    this.#hasRead &&= this.monitor.status === "live";
    if (this.monitor.status === "ended") {
      this.clock.stop();
      this.run.end();
    }
    this.changed();
  }

  changedNow() {
    clearTimeout(this.#due);
    this.#due = 0;
    this.#listener();
  }

  /** Forget the reports so far: a recording has jumped to another moment. */
  #beginEra() {
    this.run = new Run();
    this.era += 1;
  }

  /** The time on the run's clock, in µs. */
  now = () => (this.transport ? this.transport.now() : this.clock.now());

  /** Highlight a call, everywhere. */
  select = (callId) => {
    this.selected = callId;
    this.changedNow();
  };

  /** Highlight a call, or none if it is highlighted already. */
  toggle(callId) {
    this.select(callId === this.selected ? null : callId);
  }

  choose(robot) {
    this.#chosen = robot;
    this.changedNow();
  }

  /** The namespace of the chosen robot, empty for all. One that is not there hides none of the others. */
  get robot() {
    return this.run.robots.includes(this.#chosen) ? this.#chosen : "";
  }

  help(helps) {
    this.helps = helps;
    this.changedNow();
  }

  /** The agents of the chosen robot, or of all. */
  agents() {
    return this.state ? agentsOf(this.state).filter(({ name }) => this.shows(name)) : [];
  }

  /** Return whether a module belongs to the chosen robot; each does if none is chosen. */
  shows(module) {
    return !this.robot || namespaceOf(module) === this.robot;
  }

  /** Send a command, see `Orders.ask`; but not one that was meant for what was shown before. */
  ask = async (command) => {
    if (!this.isUnseen(command)) {
      this.#pauses.note(command);
      return this.#orders.ask(command);
    }
    const text = `${command.agent} was paused a moment ago: press again to let it go on`;
    this.notify(text, false);
    return { type: "error", text };
  };

  /** Return whether a command was meant for what was shown before. */
  isUnseen = (command) => this.#pauses.isUnseen(command);

  /** Send an order in an HTTP request of its own, see `Orders.order`. */
  order = (path, body) => this.#orders.order(path, body);

  #openCall(id) {
    return this.state?.calls.find((call) => call.call_id === id);
  }

  /** @param {string|null} ends the call until whose end it is said */
  notify(text, bad, ends = null) {
    const key = ++this.#count;
    this.notices = [...this.notices, { key, text: clipped(text), bad, ends }].slice(-MAX_NOTICES);
    if (!bad && ends === null) setTimeout(() => this.dismiss(key), NOTICE_MS);
    this.changedNow();
  }

  dismiss(key) {
    this.notices = this.notices.filter((notice) => notice.key !== key);
    this.changedNow();
  }

  useToken(token) {
    this.monitor.token = token;
    this.monitor.connect();
  }

  /** Take a token from the address into the tab's storage, so that no history and no bookmark keeps it. */
  #takeToken() {
    const token = new URLSearchParams(location.search).get("token")
      ?? new URLSearchParams(location.hash.slice(1)).get("token");
    if (token === null) return;
    this.monitor.token = token;
    history.replaceState(null, "", location.pathname);
  }
}
