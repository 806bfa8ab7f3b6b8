/** The store of what the run reports; it keeps the newest, up to bounds. */

import { namespaceOf } from "./format.js";
import { rendered } from "./event_texts.js";
import { reasonText } from "./reasons.js";
import { agentsOf, robotsOf } from "./snapshot.js";
import { clipped } from "./texts.js";
import { isLook, keyOf } from "./calls/families.js";
import { endedAs } from "./calls/outcomes.js";

const MAX_EVENTS = 200;
const MAX_TRAIL = 400;
const MAX_DRAFT = 4000;
const MAX_CALLS = 300;
const MAX_UPDATES = 20;
const MAX_TALK = 300;

/** Kinds of agents' events that the conversation and the calls show as well. The list of events shows them on request
 * only, like the operators' own calls. */
const STEPS = new Set([
  "input", "update", "iteration_start", "content", "call_start", "call_complete", "answer", "usage", "call_run",
  "call_open", "call_end", "result", "free_motion",
]);

/** The part of an agent's snapshot that says what it does and waits for, once its run has ended. */
const ENDED = { state: "closed", mode: "running", retry: null, missions: [], calls: [], approvals: [], waiting_calls: [] };

/** Types of events that are listed. Progress is not: the monitor does not send it as events either. */
const LISTED = new Set(["open", "update", "close"]);

/**
 * A call, as far as the page has heard of it since it was opened.
 * @typedef {{id: string, skill: string, module: string, caller: string, parent: string, arguments: object,
 *   state: string, text: string, utime: number, closed: number|null, result: unknown,
 *   updates: {utime: number, text: string}[], progress: object}} KnownCall
 */

/** The newest reports of a run, up to bounds. */
export class Run {
  /** The monitor's snapshot, without calls by which programs only look at agents. */
  state = null;
  events = [];
  /** The newest events, every step among them. */
  steps = [];
  /** The newest positions of each robot, in metres, oldest first, by namespace. */
  trails = new Map();
  /** Answers that are being written, by agent. */
  drafts = new Map();
  /** @type {Map<string, KnownCall>} by id, open ones and the newest that are closed; a call that changes is a new object */
  calls = new Map();
  /** The number of changes of `calls` so far. */
  callsChanged = 0;
  /** Entries of conversations, by agent, oldest first. An entry that does not change stays the same object. */
  talks = new Map();
  /** The robots that there are to choose from, as of `state`. @type {string[]} */
  robots = [];
  #count = 0;
  /** The offset of the oldest event of a call that was heard, and that of the newest one that was read. */
  #heardFrom = Infinity;
  #readTo = 0;
  /** The newest event of a call that is known, by its offset and key. */
  #newest = { offset: 0, key: "" };
  /** What was the newest when the connection began. */
  #before = { newest: this.#newest, step: undefined, event: undefined };

  show(state) {
    this.state = state.calls.some(isLook) ? { ...state, calls: state.calls.filter((call) => !isLook(call)) } : state;
    this.robots = robotsOf(state);
    for (const [name, robot] of Object.entries(state.robots)) this.#follow(name, robot);
    for (const [name, agent] of Object.entries(state.agents)) {
      const draft = this.drafts.get(name);
      if (draft && agent.number >= draft.until) this.drafts.delete(name);
      this.talks.set(name, continued(this.talks.get(name) ?? [], agent.conversation));
    }
    this.#takeCalls(this.state.calls);
  }

  agentEvent(event) {
    this.#draft(event);
    const { utime, agent: who, kind, data } = event;
    const bad = kind === "error" || data.is_error === true;
    this.#log({ utime, who, kind, text: rendered(data, namespaceOf(who)), bad }, STEPS.has(kind));
  }

  /** @param {object} event @param {number} [offset] its own, if the journal has it */
  callEvent(event, offset = Infinity) {
    if (offset < Infinity) this.#newest = { offset, key: keyOf(event) };
    if (isLook(event)) return;
    if (offset > this.#readTo) this.#log(lineOf(event), this.#isCommand(event));
    this.#heardFrom = Math.min(this.#heardFrom, offset);
    this.#callHappened(event);
  }

  /**
   * List the events between those that were heard over the connection before and those that are heard over this one.
   * @param {{offset: number, event: object}[]} page the newest of the journal, oldest first
   */
  takeOlder(page) {
    const { newest, step, event: listed } = this.#before;
    const isSameJournal = page.some(({ offset, event }) => offset === newest.offset && keyOf(event) === newest.key);
    const missed = page.filter(({ offset }) => offset < this.#heardFrom && (!isSameJournal || offset > newest.offset));
    const older = missed.filter(({ event }) => LISTED.has(event.type) && !isLook(event)).reverse();
    const lines = (entries) => entries.map(({ event }) => ({ ...lineOf(event), key: ++this.#count }));
    this.steps = insertedBefore(step, lines(older), this.steps);
    this.events = insertedBefore(listed, lines(older.filter(({ event }) => !this.#isCommand(event))), this.events);
    this.#readTo = older[0]?.offset ?? 0;
    const last = page.at(-1);
    if (last && this.#heardFrom === Infinity) this.#newest = { offset: last.offset, key: keyOf(last.event) };
  }

  #isCommand({ module }) {
    return agentsOf(this.state).some(({ name }) => name === module);
  }

  note(kind, text, utime) {
    this.#log({ utime, who: "", kind, text, bad: true }, false);
  }

  /** Forget drafts and open calls before a snapshot: their ends may have been missed. */
  begin() {
    this.drafts.clear();
    [this.#heardFrom, this.#readTo] = [Infinity, 0]; // perhaps it is another run, with offsets of its own
    this.#before = { newest: this.#newest, step: this.steps[0], event: this.events[0] };
    for (const [id, { closed }] of this.calls) if (closed === null) this.calls.delete(id);
  }

  /** Note that the run has ended: what it did does not go on, and nobody waits for anything. */
  end() {
    if (!this.state) return;
    this.begin();
    const agents = Object.fromEntries(Object.entries(this.state.agents).map(([name, agent]) => [name, { ...agent, ...ENDED }]));
    this.state = { ...this.state, agents, calls: [], leases: {}, not_ending: [] };
  }

  #log(line, isStep) {
    const logged = { ...line, key: ++this.#count, text: clipped(line.text) };
    // New lists, so that a view of one can tell by the object that it has changed.
    this.steps = [logged, ...this.steps.slice(0, MAX_EVENTS - 1)];
    if (!isStep) this.events = [logged, ...this.events.slice(0, MAX_EVENTS - 1)];
  }

  /** Update an agent's draft. The answer's event completes it, and it stays until the state has the answer, too. */
  #draft(event) {
    const draft = this.drafts.get(event.agent);
    if (event.kind === "content" && !event.data.reasoning) {
      const before = draft && draft.until === Infinity ? draft.text : "";
      this.drafts.set(event.agent, { text: (before + event.data.text).slice(-MAX_DRAFT), until: Infinity });
    } else if (draft && ["answer", "iteration_start", "stop"].includes(event.kind)) {
      this.drafts.set(event.agent, { ...draft, until: Math.min(draft.until, event.number) });
    }
  }

  #takeCalls(lines) {
    for (const call of lines) {
      const known = this.calls.get(call.call_id);
      if (known && (known.closed !== null || isSame(known, call))) continue;
      this.#keep({
        updates: [], closed: null, result: null, ...known,
        id: call.call_id, skill: call.skill, module: call.module, caller: call.caller, parent: call.parent,
        arguments: call.arguments, state: call.state, text: call.text, utime: call.requested_utime, progress: call.progress,
      });
    }
  }

  #callHappened(event) {
    const known = this.calls.get(event.call_id) ?? {
      id: event.call_id, skill: event.skill, module: event.module, caller: event.caller, parent: event.data.parent ?? "",
      arguments: event.data.arguments ?? {}, utime: event.utime, updates: [], closed: null, result: null, progress: {},
    };
    const updates = event.type === "update"
      ? [...known.updates.slice(1 - MAX_UPDATES), { utime: event.utime, text: clipped(event.text) }] : known.updates;
    const end = event.type === "close"
      ? { state: endedAs(event), closed: event.utime, result: event.data.result ?? null } : { state: "open" };
    this.#keep({ ...known, text: event.text, updates, ...end });
  }

  #keep(known) {
    this.callsChanged++;
    this.calls.set(known.id, known);
    if (this.calls.size <= MAX_CALLS) return;
    const all = [...this.calls.values()];
    this.calls.delete((all.find(({ closed }) => closed !== null) ?? all[0]).id);
  }

  #follow(name, robot) {
    if (robot.x === null || robot.y === null) return;
    const trail = this.trails.get(name) ?? [];
    const last = trail.at(-1);
    const moved = last ? Math.hypot(robot.x - last.x, robot.y - last.y) : Infinity;
    if (moved < 0.02) return;
    const kept = moved < 1 ? trail.slice(1 - MAX_TRAIL) : []; // a jump, with which a new trail begins
    this.trails.set(name, [...kept, { x: robot.x, y: robot.y }]);
  }
}

/** Return lines, newest first, with others before `last`, or behind all if it is not among them. */
function insertedBefore(last, others, lines) {
  const at = lines.indexOf(last);
  const place = at < 0 ? lines.length : at;
  return [...lines.slice(0, place), ...others, ...lines.slice(place)].slice(0, MAX_EVENTS);
}

/** Return an event of a call as a line of the list of events. */
function lineOf(event) {
  const kind = event.type === "close" ? endedAs(event) : event.type;
  const bad = event.type === "close" && !["completed", "cancelled"].includes(kind);
  return { utime: event.utime, who: event.skill, kind, text: clipped(reasonText(event.text, namespaceOf(event.module))), bad };
}

/** Return whether a call's line says nothing new about it. */
function isSame(known, call) {
  return known.text === call.text && known.state === call.state
    && Object.entries(call.progress).every(([name, value]) => known.progress[name] === value);
}

/** Return a conversation continued by its newest entries, without progress, which calls show themselves. */
function continued(before, newest) {
  const shown = newest.filter((entry) => entry.text && entry.role !== "progress");
  if (shown.length === 0) return newest.length === 0 ? [] : before;
  const known = new Map(before.map((entry) => [entry.number, entry]));
  const older = before.filter((entry) => entry.number < shown[0].number);
  const kept = shown.map((entry) => {
    const was = known.get(entry.number);
    return was?.text === entry.text && was.is_error === entry.is_error ? was : entry;
  });
  const whole = [...older, ...kept].slice(-MAX_TALK);
  return whole.length === before.length && whole.every((entry, place) => entry === before[place]) ? before : whole;
}
