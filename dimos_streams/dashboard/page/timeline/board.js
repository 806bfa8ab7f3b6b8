/** The timeline's state: the calls that are known, the part of time that is seen, and what is pointed at. */

import { CallLog } from "./calls.js";
import { History } from "./history.js";
import { laidOut, pausesOf } from "./layout.js";
import { panned, SECOND, spanOf, viewAt, zoomed } from "./scale.js";

const FIRST_SPAN = { least: 20 * SECOND, most: 120 * SECOND };
const BESIDE = 0.25;
const ALL_CALLS = 200;
const NOTIFY_MS = 250;

/** Begins the id of what waits for an approval: it is no call yet. */
export const APPROVAL = "approval:";

export class Board {
  log = new CallLog();
  history;
  /** Whether the view goes along with the time. */
  follows = true;
  /** The call that the arrow keys are at. @type {string|null} */
  cursor = null;
  /** @type {string|null} */
  hovered = null;
  /** Pixels that the rows are moved up. */
  scroll = 0;
  #session;
  #view = { from: 0, to: 0 };
  /** The length of the view; null until somebody has chosen one. @type {number|null} */
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

  /** Begin to hear. @returns {() => void} ends that */
  start() {
    const { state } = this.#session.run;
    if (state) this.#takeState(state);
    const unhear = this.#session.hear((message) => this.#take(message));
    return () => {
      unhear();
      this.history.stop();
    };
  }

  /** Call `listener` when something has changed that the page's own parts show, a few times a second at most. */
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

  /** The part of time that is seen. */
  get view() {
    return this.follows ? viewAt(this.now, this.#chosenSpan ?? this.#firstSpan) : this.#view;
  }

  /** Of a run that has just begun all is seen, as large as can be. */
  get #firstSpan() {
    const age = this.log.beginning === null ? Infinity : (this.now - this.bounds.first) * 1.3;
    return Math.min(FIRST_SPAN.most, Math.max(FIRST_SPAN.least, age));
  }

  get now() {
    return this.#session.now();
  }

  /** What is later has not happened yet: a recording is looked at from its middle. */
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

  /** What may be looked at: from the first that is known to now. */
  get bounds() {
    const { calls, knownFrom } = this.log;
    const first = [...calls.values()].reduce((least, { begin }) => Math.min(least, begin), Math.min(knownFrom, this.now));
    const last = this.#session.readOnly ? [...calls.values()].reduce((most, { end }) => Math.max(most, end ?? 0), this.now) : this.now;
    return { first, last };
  }

  /** Times in which robots were kept still, as far as that is known. @returns {import("./layout.js").Band[]} */
  get bands() {
    const { state } = this.#session.run;
    if (state !== this.#bandsOf || this.log.version !== this.#bandsVersion) {
      [this.#bandsOf, this.#bandsVersion, this.#bands] = [state, this.log.version, this.#bandsNow(state)];
    }
    return this.#bands;
  }

  #bandsNow(state) {
    const stops = (state?.stopped.stops ?? []).map(({ robot, utime }) => ({ robot: robot || null, from: utime, to: null, text: "stopped", tone: "bad" }));
    return [...pausesOf(this.log.calls.values(), (agent) => state?.agents[agent]?.mode === "paused"), ...stops];
  }

  /** From when on all is known; before, nothing was or nothing is known. */
  get knownFrom() {
    if (this.log.beginning === null) return Math.min(this.log.knownFrom, this.now);
    return this.log.calls.size > 0 ? this.bounds.first : -Infinity;
  }

  /** What there is to say of the time before the first that is known. */
  get before() {
    if (this.history.problem) return this.history.problem;
    if (this.log.beginning !== null) return this.log.beginning;
    if (this.log.isFull) return "Further back: GET /events, or dimos-streams calls.";
    return this.history.busy ? "Reads what was earlier …" : "";
  }

  /** Read what is seen and a little more, if it is not known. */
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

  /** See a time as a whole, with something around it. */
  show(from, to) {
    const margin = Math.max(SECOND, (to - from) * 0.15);
    this.follows = false;
    this.#become({ from: from - margin, to: to + margin });
  }

  /** See a call, if it is not seen: its beginning, in the present scale. */
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

  /** Whether the page hears of the run; asked whenever that may have changed. */
  hears(isSeeing) {
    if (this.#session.readOnly || isSeeing === this.#isSeeing) return;
    if (isSeeing) this.log.sees(this.now);
    else if (this.log.newest > 0) {
      this.log.lostSight(this.now, "no connection");
      this.#missed = true;
    }
    this.#isSeeing = isSeeing;
  }

  #take(message) {
    if (message.type === "call") this.log.take(message.offset, message.event);
    else if (message.type === "gap") this.#missed = true;
    else if (message.type === "snapshot" || message.change?.calls || message.change?.agents) this.#takeState(this.#session.run.state);
    // Who goes to another moment of a recording gets a snapshot, and not what was said on the way.
    if (message.type === "snapshot" && (this.#missed || this.#session.readOnly)) {
      this.#missed = false;
      this.history.catchUp(() => this.now, this.#session.readOnly);
    }
    this.log.trim();
    this.changed();
  }

  #takeState(state) {
    // At an earlier moment of a recording calls are not open that are known to come.
    this.log.takeState(state.calls, this.now, state.calls.length < ALL_CALLS && !this.#session.readOnly);
    const agents = Object.values(state.agents);
    for (const { call_id: id, missions } of agents.flatMap((agent) => agent.conversation)) {
      if (id && missions?.length && this.log.calls.has(id)) this.log.missionOf.set(id, missions.at(-1));
    }
    this.#approvals = agents.flatMap((agent) => agent.approvals.map((approval) => asked(agent, approval)));
  }
}

/** What waits for an operator's word, as if it were a call that is about to begin. */
function asked(agent, approval) {
  return {
    id: APPROVAL + approval.id, skill: approval.skill, module: approval.module, caller: agent.agent, parent: approval.missions?.[0] ?? "",
    arguments: approval.arguments, resources: [], state: "asked", begin: approval.created_utime, end: null, isWhole: true,
    text: approval.reason, result: null, error: "", ticks: [], omitted: 0, fraction: null, most: {}, first: Infinity, last: -1,
  };
}
