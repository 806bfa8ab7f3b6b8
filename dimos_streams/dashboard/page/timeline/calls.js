/** The calls of a run, assembled from events that may come in any order, up to bounds. */

import { isLook, keyOf } from "../calls/families.js";
import { endedAs } from "../calls/outcomes.js";
import { clipped } from "../texts.js";

const MAX = { calls: 4000, ticks: 40_000, ticksOfOne: 400, breaks: 50, text: 600, json: 6000 };

/**
 * @typedef {{offset: number, utime: number, type: string, text: string, isBad: boolean, isNote: boolean}} Tick an update, or a gap
 * @typedef {{id: string, skill: string, module: string, caller: string, parent: string, arguments: object,
 *   resources: string[], state: string, begin: number, end: number|null, isWhole: boolean, text: string, result: unknown,
 *   error: string, ticks: Tick[], omitted: number, fraction: number|null, most: Record<string, number>,
 *   first: number, last: number}} Call
 * Times are µs since the Unix epoch. `state` is `requested`, `open`, an outcome, or `unknown` if its end was
 * missed. `isWhole` says whether its beginning is known, and not only that it was running; `omitted` counts updates
 * that are not kept; `first` and `last` are the offsets of its oldest and newest event.
 * @typedef {{from: number, to: number|null, text: string}} Break a time of which the page has not heard
 */

export class CallLog {
  /** @type {Map<string, Call>} */
  calls = new Map();
  /** @type {Break[]} */
  breaks = [];
  /** The number of changes so far. */
  version = 0;
  /** Ids of missions by the ids of calls that belong to them, as far as that was said. @type {Map<string, string>} */
  missionOf = new Map();
  /** The offset from which on every event was taken, up to `newest`. */
  since = Infinity;
  newest = 0;
  /** The key of the newest event, by which the journal is recognised. */
  newestEvent = "";
  /** The time from which on every event was taken, in µs. */
  knownFrom = Infinity;
  /** The text about what is before the oldest event; null as long as there may be more events. @type {string|null} */
  beginning = null;
  #ticks = 0;
  #limits;

  constructor(limits = {}) {
    this.#limits = { ...MAX, ...limits };
  }

  /** Take an event, as the monitor sends it or a page of `GET /events` has it. */
  take(offset, event) {
    this.since = Math.min(this.since, offset);
    if (offset > this.newest) [this.newest, this.newestEvent] = [offset, keyOf(event)];
    if (event.type === "gap" && !event.call_id) {
      this.#missing(event);
      return;
    }
    if (isLook(event)) return;
    const call = this.#callOf(offset, event);
    call.first = Math.min(call.first, offset);
    if (event.type === "open") this.#opened(call, event);
    else if (event.type === "close") this.#closed(call, event);
    else if (event.type !== "progress") {
      this.#addTick(call, offset, event);
      this.#takeEntry(call, offset, event);
    }
    if (offset >= call.last) call.text = clipped(event.text, MAX.text);
    call.last = Math.max(call.last, offset);
    this.version += 1;
  }

  /** Take a page of older events. `since` is the offset from which on it has all; null if there are no older ones. */
  takePage(entries, since) {
    for (const { offset, event } of entries) this.take(offset, event);
    const times = entries.filter(({ event }) => event.call_id).map(({ event }) => event.utime);
    this.knownFrom = times.reduce((least, utime) => Math.min(least, utime), this.knownFrom);
    if (since === null) this.beginning ??= "No call before this.";
    else this.since = Math.min(this.since, since);
    this.version += 1;
  }

  /** Take the calls that are open now; if these are all, the ends of others were missed.
   * @param {object[]} lines of the monitor's state @param {boolean} isAll */
  takeState(lines, now, isAll) {
    const open = new Map(lines.map((line) => [line.call_id, line]));
    for (const line of lines) this.#takeLine(line);
    for (const call of this.calls.values()) {
      const wasOpen = call.state === "open" || call.state === "requested";
      if (wasOpen && isAll && !open.has(call.id)) this.#lose(call, now);
    }
  }

  /** Begin a break: from now on nothing is heard. */
  lostSight(utime, text) {
    if (this.breaks.at(-1)?.to === null) return;
    this.breaks = [...this.breaks.slice(1 - MAX.breaks), { from: utime, to: null, text }];
    this.version += 1;
  }

  /** End the break: the page hears again. */
  sees(utime) {
    const last = this.breaks.at(-1);
    if (last?.to !== null) return;
    last.to = Math.max(last.from, utime);
    this.version += 1;
  }

  /** Mark a time at which something is missing, or begins. */
  missed(utime, text) {
    this.breaks = [...this.breaks.slice(1 - MAX.breaks), { from: utime, to: utime, text }];
    this.version += 1;
  }

  /** Go over to another journal, in which offsets mean other events. */
  beginAnew(utime) {
    this.missed(utime, "another run begins");
    for (const call of this.calls.values()) {
      if (call.end === null) this.#lose(call, utime);
      [call.first, call.last] = [Infinity, -1];
    }
    [this.since, this.newest, this.beginning] = [Infinity, 0, null];
  }

  /** If there are too many calls, forget those that ended first; they can be read again from pages. */
  trim() {
    const { calls, ticks } = this.#limits;
    if (this.calls.size <= calls && this.#ticks <= ticks) return;
    const ended = [...this.calls.values()].filter(({ end }) => end !== null).sort((one, other) => one.end - other.end);
    for (const call of ended) {
      if (this.calls.size <= calls * 0.9 && this.#ticks <= ticks * 0.9) break;
      this.calls.delete(call.id);
      this.#ticks -= call.ticks.length;
      this.since = Math.max(this.since, call.last + 1);
      this.knownFrom = Math.max(this.knownFrom === Infinity ? -Infinity : this.knownFrom, call.end);
      this.beginning = null;
    }
    for (const id of this.missionOf.keys()) if (!this.calls.has(id)) this.missionOf.delete(id);
    this.version += 1;
  }

  /** True if nearly as much is kept as may be: there is no use in looking further back. */
  get isFull() {
    return this.calls.size >= this.#limits.calls * 0.95 || this.#ticks >= this.#limits.ticks * 0.95;
  }

  #callOf(offset, event) {
    const known = this.calls.get(event.call_id);
    if (known) return known;
    const call = {
      id: event.call_id, skill: event.skill, module: event.module, caller: event.caller, parent: "", arguments: {},
      resources: [], state: "open", begin: event.utime, end: null, isWhole: false, text: "", result: null, error: "",
      ticks: [], omitted: 0, fraction: null, most: {}, first: offset, last: -1,
    };
    this.calls.set(call.id, call);
    return call;
  }

  #opened(call, event) {
    call.begin = Math.min(call.isWhole ? call.begin : Infinity, event.utime);
    call.isWhole = true;
    call.parent = textOf(event.data.parent);
    call.arguments = kept(event.data.arguments ?? {});
    call.resources = Array.isArray(event.data.resources) ? event.data.resources.map(String) : [];
    if (call.state === "requested") call.state = "open";
    [call.skill, call.module, call.caller] = [event.skill, event.module, event.caller];
  }

  #closed(call, event) {
    call.state = endedAs(event);
    call.end = Math.max(event.utime, call.isWhole ? call.begin : -Infinity);
    call.result = kept(event.data.result ?? null);
    call.error = textOf(event.data.error);
    if (!call.isWhole) call.begin = Math.min(call.begin, event.utime);
  }

  #addTick(call, offset, event) {
    let at = call.ticks.findLastIndex((tick) => tick.offset <= offset) + 1;
    if (call.ticks[at - 1]?.offset === offset) return;
    if (!call.isWhole) call.begin = Math.min(call.begin, event.utime);
    if (call.ticks.length >= MAX.ticksOfOne) {
      call.omitted += 1;
      if (at === 0) return;
      call.ticks.shift();
      at -= 1;
      this.#ticks -= 1;
    }
    const { entry } = event.data;
    const marks = { isBad: event.type === "gap" || (entry?.is_error === true && entry.outcome !== "cancelled"), isNote: entry?.role === "note" };
    call.ticks.splice(at, 0, { offset, utime: event.utime, type: event.type, text: clipped(event.text, MAX.text), ...marks });
    this.#ticks += 1;
  }

  /** Take a mission's report of what its model asked for: a call of the mission, or a refusal, shown as a call. */
  #takeEntry(mission, offset, { utime, data: { entry }, module }) {
    if (typeof entry?.call_id === "string") this.missionOf.set(entry.call_id, mission.id);
    else if (entry?.role === "tool" && entry.is_error && entry.skill) {
      const refused = this.#callOf(offset, { call_id: `${mission.id}!${offset}`, skill: textOf(entry.skill), module, caller: module, utime });
      Object.assign(refused, { state: "rejected", isWhole: true, end: utime, parent: mission.id, text: clipped(textOf(entry.text), MAX.text), last: offset });
    }
  }

  #missing(event) {
    const { from_offset: from, to_offset: to } = event.data;
    if (from === 1) this.beginning = `Before this, ${event.text}.`;
    else this.missed(event.utime, `${to - from + 1} events are missing`);
    this.version += 1;
  }

  #takeLine(line) {
    const known = this.calls.get(line.call_id);
    if (known && known.end !== null && known.state !== "unknown") return;
    const call = known ?? this.#callOf(Infinity, { ...line, utime: line.requested_utime });
    if (call.state === "unknown") call.end = null;
    const before = `${call.state} ${call.text} ${call.begin} ${call.fraction}`;
    call.state = line.state;
    call.text = line.text;
    call.begin = Math.min(call.begin, line.requested_utime);
    if (!call.isWhole) {
      [call.isWhole, call.parent, call.resources, call.arguments] = [true, line.parent, line.resources, kept(line.arguments)];
    }
    call.fraction = fractionOf(line.progress ?? {}, call.most) ?? call.fraction;
    if (before !== `${call.state} ${call.text} ${call.begin} ${call.fraction}` || !known) this.version += 1;
  }

  #lose(call, now) {
    [call.state, call.end] = ["unknown", Math.max(call.begin, now)];
    this.version += 1;
  }
}

/**
 * Return how much of a call is done, 0 to 1, by the numbers in its newest progress; null if these don't tell.
 * @param {Record<string, unknown>} progress @param {Record<string, number>} most the most that each of them was
 */
export function fractionOf(progress, most) {
  const numbers = Object.entries(progress).filter(([, value]) => typeof value === "number" && Number.isFinite(value));
  for (const [name, value] of numbers) {
    if (/^(fraction|done_share)$/.test(name)) return within(value);
    if (/^percent(age)?$|_percent$/.test(name)) return within(value / 100);
    if (/^remaining/.test(name)) {
      most[name] = Math.max(most[name] ?? 0, Math.abs(value));
      return most[name] > 0 ? within(1 - Math.abs(value) / most[name]) : null;
    }
  }
  const of = Object.fromEntries(numbers);
  return of.total > 0 && of.done >= 0 ? within(of.done / of.total) : null;
}

function within(value) {
  return Math.min(1, Math.max(0, value));
}

function textOf(value) {
  return typeof value === "string" ? value : "";
}

/** Return a value, or the beginning of its JSON if that is long: an event may have 60 kB. */
function kept(value) {
  const text = JSON.stringify(value);
  return text !== undefined && text.length > MAX.json ? { beginning: clipped(text, MAX.json) } : value;
}
