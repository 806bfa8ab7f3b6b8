/** The timeline's state: the known calls, the time span in view, and the calls under mouse and cursor. */

import { isIn } from "../format.js";
import { CallLog } from "./calls.js";
import { History } from "./history.js";
import { laidOut, pausesOf } from "./layout.js";
import { panned, SECOND, spanOf, viewAt, zoomed } from "./scale.js";

const FIRST_SPAN = { least: 20 * SECOND, most: 120 * SECOND };
const BESIDE = 0.25;
const ALL_CALLS = 200;
const NOTIFY_MS = 250;

/** Prefix of the ids of approvals, which are shown like calls although they are none yet. */
export const APPROVAL = "approval:";

export class Board {
  log = new CallLog();
  history;
  /** True while the view moves along with time. */
  follows = true;
  /** The call that was reached with the arrow keys. @type {string|null} */
  cursor = null;
  /** @type {string|null} */
  hovered = null;
  /** The distance by which the rows are scrolled up, in pixels. */
  scroll = 0;
  #session;
  #view = { from: 0, to: 0 };
  /** The length of the view, in µs; null until somebody has chosen one. @type {number|null} */
  #chosenSpan = null;
  #layout = null;
  #layoutOf = "";
  #approvals = [];
  #listeners = new Set();
  #due = 0;
  #bands = [];
  #bandsOf = null;
  #bandsVersion = -1;
  #isSeeing = false;
  #missed = false;

  /** @param {import("../session.js").Session} session */
  constructor(session) {
    this.#session = session;
    this.history = new History(this.log, (path) => session.monitor.get(path), () => this.changed());
  }

  /** Begin to take the messages of the session. @returns {() => void} ends that */
  start() {
    const { state } = this.#session.run;
    if (state) this.#takeState(state);
    const unhear = this.#session.hear((message) => this.#take(message));
    return () => {
      unhear();
      this.history.stop();
    };
  }

  /** Call `listener` when something has changed: at once for what users do, else a few times a second at most. */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed() {
    this.#due ||= setTimeout(() => {
      this.#due = 0;
      for (const listener of this.#listeners) listener();
    }, NOTIFY_MS);
  }

  /** The time span in view. */
  get view() {
    return this.follows ? viewAt(this.now, this.#chosenSpan ?? this.#firstSpan) : this.#view;
  }

  /** The length of the first view, in µs: all of a young run and a little more, within bounds. */
  get #firstSpan() {
    const age = this.log.beginning === null ? Infinity : (this.now - this.bounds.first) * 1.3;
    return Math.min(FIRST_SPAN.most, Math.max(FIRST_SPAN.least, age));
  }

  get now() {
    return this.#session.now();
  }

  /** The time after which nothing has happened yet: now in a recording, whose later calls may be known; else never. */
  get until() {
    return this.#session.readOnly ? this.now : Infinity;
  }

  get layout() {
    const which = `${this.log.version} ${this.#session.robot} ${this.#approvals.map(({ id }) => id)} ${this.log.missionOf.size}`;
    if (which !== this.#layoutOf) {
      const calls = [...this.log.calls.values(), ...this.#approvals].filter(({ module }) => this.#session.shows(module));
      this.#layout = laidOut(calls, this.log.missionOf);
      this.#layoutOf = which;
    }
    return this.#layout;
  }

  /** The times that can be looked at: from the first known call to now, or to the last known end in a recording. */
  get bounds() {
    const { calls, knownFrom } = this.log;
    const first = [...calls.values()].reduce((least, { begin }) => Math.min(least, begin), Math.min(knownFrom, this.now));
    const last = this.#session.readOnly ? [...calls.values()].reduce((most, { end }) => Math.max(most, end ?? 0), this.now) : this.now;
    return { first, last };
  }

  /** The times in which robots were kept still, as far as they are known. @returns {import("./layout.js").Band[]} */
  get bands() {
    const { state } = this.#session.run;
    if (state !== this.#bandsOf || this.log.version !== this.#bandsVersion) {
      [this.#bandsOf, this.#bandsVersion, this.#bands] = [state, this.log.version, this.#bandsNow(state)];
    }
    return this.#bands;
  }

  #bandsNow(state) {
    const { stops = [], released = [] } = state?.stopped ?? {};
    const stopped = stops.map(({ robot, utime }) => ({
      robot: robot || null, released: released.filter((name) => isIn(name, robot)), from: utime, to: null, text: "stopped", tone: "bad",
    }));
    return [...pausesOf(this.log.calls.values(), (agent) => state?.agents[agent]?.mode === "paused"), ...stopped];
  }

  /** The time from which on all calls are known; before it there were none, or none are known. */
  get knownFrom() {
    if (this.log.beginning === null) return Math.min(this.log.knownFrom, this.now);
    return this.log.calls.size > 0 ? this.bounds.first : -Infinity;
  }

  /** The text about the time before `knownFrom`. */
  get before() {
    if (this.history.problem) return this.history.problem;
    if (this.log.beginning !== null) return this.log.beginning;
    if (this.log.isFull) return "Further back: GET /events, or dimos-streams calls.";
    return this.history.busy ? "Reads what was earlier …" : "";
  }

  /** Read the calls in view and a little before, if they are not known. */
  lookBack() {
    const { view } = this;
    if (this.#session.monitor.status === "live") this.history.reach(view.from - BESIDE * spanOf(view));
  }

  zoom(factor, at) {
    const { view } = this;
    this.#become(zoomed(view, factor, this.follows ? this.now : (at ?? (view.from + view.to) / 2)));
  }

  pan(share) {
    const { view } = this;
    this.follows = false;
    this.#become(panned(view, share, this.bounds));
  }

  /** Show the whole of a time span, with some margin. */
  show(from, to) {
    const margin = Math.max(SECOND, (to - from) * 0.15);
    this.follows = false;
    this.#become({ from: from - margin, to: to + margin });
  }

  /** Move to the beginning of a call if it is not in view, without a change of scale. */
  reveal(id) {
    const bar = this.layout.byId.get(id);
    const { view } = this;
    if (!bar || (bar.call.begin < view.to && (bar.call.end ?? Infinity) > view.from)) return;
    this.follows = false;
    const from = bar.call.begin - spanOf(view) * 0.2;
    this.#become({ from, to: from + spanOf(view) });
  }

  follow(follows) {
    this.#view = this.view;
    this.follows = follows;
    this.#notify();
  }

  moveCursor(id) {
    this.cursor = id;
    if (id !== null) this.reveal(id);
    this.#notify();
  }

  #become(view) {
    this.#view = view;
    this.#chosenSpan = spanOf(view);
    this.lookBack();
    this.#notify();
  }

  #notify() {
    clearTimeout(this.#due);
    this.#due = 0;
    for (const listener of this.#listeners) listener();
  }

  /** Note the state of the connection to the run. Call it whenever that may have changed. */
  hears(status) {
    const isSeeing = status === "live";
    if (this.#session.readOnly || isSeeing === this.#isSeeing) return;
    if (isSeeing) this.log.sees(this.now);
    else if (this.log.newest > 0) {
      this.log.lostSight(this.now, status === "ended" ? "the run has ended" : "no connection");
      this.#missed = true;
    }
    if (status === "ended" && this.#session.run.state) this.#takeState(this.#session.run.state);
    this.#isSeeing = isSeeing;
  }

  #take(message) {
    if (message.type === "call") this.log.take(message.offset, message.event);
    else if (message.type === "gap") this.#missed = true;
    else if (message.type === "snapshot" || message.change?.calls || message.change?.agents) this.#takeState(this.#session.run.state);
    // A jump in a recording brings a snapshot, but not the events that were passed over.
    if (message.type === "snapshot" && (this.#missed || this.#session.readOnly)) {
      this.#missed = false;
      this.history.catchUp(() => this.now, this.#session.readOnly);
    }
    this.log.trim();
    this.changed();
  }

  #takeState(state) {
    // In a recording, a known call that is not listed may be yet to come: it is not lost.
    this.log.takeState(state.calls, this.now, state.calls.length < ALL_CALLS && !this.#session.readOnly);
    const agents = Object.values(state.agents);
    for (const { call_id: id, missions } of agents.flatMap((agent) => agent.conversation)) {
      if (id && missions?.length && this.log.calls.has(id)) this.log.missionOf.set(id, missions.at(-1));
    }
    this.#approvals = agents.flatMap((agent) => agent.approvals.map((approval) => asked(agent, approval)));
  }
}

/** Return a pending approval as if it were a call that is about to begin. */
function asked(agent, approval) {
  return {
    id: APPROVAL + approval.id, skill: approval.skill, module: approval.module, caller: agent.agent, parent: approval.missions?.[0] ?? "",
    arguments: approval.arguments, resources: [], state: "asked", begin: approval.created_utime, end: null, isWhole: true,
    text: approval.reason, result: null, error: "", ticks: [], omitted: 0, fraction: null, most: {}, first: Infinity, last: -1,
  };
}
