/**
 * The conversation as a list of items in the order of time. What an agent or a person says is a bubble; a fact about a call
 * is on its card, once.
 */

import { namespaceOf } from "../format.js";
import { withoutGates } from "../held.js";
import { ASKS, reasonText } from "../reasons.js";
import { Echoes } from "./echoes.js";
import { reportOf } from "./report.js";

const SAME_MOMENT_US = 100_000;
const MAX_NOTES = 3;
/** The text that stands in place of an answer if the model was asked for none. */
const NOTHING_SAID = "[noted]";
/** Matches an agent's report of a stop: what has ended, and whether its robot stood still. */
const STOPPED = /^\[?(stopped: (?:no call ran|\d+ calls? ended).*?)\]?$/s;

/**
 * @typedef {{key: string, utime: number, kind: string, text?: string, bad?: boolean, call?: object, report?: object,
 *   reports?: {utime: number, text: string}[], approval?: object}} Item
 * `kind` is `operator`, `assistant`, `call` (one card for each call), `refusal` (of a call that never began), `note`,
 * `notes` (several older ones that are folded away) or `approval`. `reports` are all that the agent was told of a call,
 * `report` is the newest.
 */

/** Return the items of a conversation's entries, oldest first; `calls` are by id, `agent` is its snapshot. @returns {Item[]} */
export function itemsOf(entries, calls, agent) {
  const made = new Making(calls, agent, Echoes.of(entries));
  for (const entry of entries) made.add(entry);
  for (const known of calls.values()) made.addCall(known);
  for (const approval of agent.approvals) made.addApproval(approval);
  return folded(made.items.sort((one, other) => one.utime - other.utime));
}

class Making {
  items = [];
  #cards = new Map();

  constructor(calls, agent, echoes) {
    this.echoes = echoes;
    this.calls = calls;
    this.agent = agent;
    this.askedAt = agent.approvals.map((approval) => approval.created_utime);
  }

  add(entry) {
    const { utime, text, role } = entry;
    if (role === "assistant" && (text === NOTHING_SAID || this.echoes.has(text))) return;
    const key = `entry ${entry.number}`;
    if (role === "operator" || role === "assistant") this.items.push({ key, utime, kind: role, text: ownText(role, text) });
    else if (entry.call_id) this.#report(entry);
    else if (entry.skill) this.items.push({ key, utime, kind: "refusal", text: entry.skill, report: reportOf(text), bad: entry.is_error });
    else if (!this.#isAsked(utime)) this.items.push({ key, utime, kind: "note", text: this.#noted(text), bad: role === "error" });
  }

  /** Add a call, if it is the agent's own and no entry is about it. */
  addCall(known) {
    if (known.caller !== this.agent.agent || known.parent || this.#cards.has(known.id)) return;
    this.#card(known.id, known.skill, known.utime);
  }

  addApproval(approval) {
    this.items.push({ key: `approval ${approval.id}`, utime: approval.created_utime, kind: "approval", approval });
  }

  #report({ call_id: id, skill, text, utime, is_error: bad }) {
    const report = reportOf(text);
    const card = this.#cards.get(id) ?? this.#card(id, skill, utime);
    card.reports.push({ utime, text: report.text });
    Object.assign(card, { report, bad });
  }

  #card(id, skill, utime) {
    const known = this.calls.get(id) ?? null;
    const card = { key: `call ${id}`, utime: known?.utime ?? utime, kind: "call", id, text: skill, call: known, report: null, reports: [], bad: false };
    this.#cards.set(id, card);
    this.items.push(card);
    return card;
  }

  #noted(text) {
    return ASKS.test(text) ? "An operator was asked for approval." : reasonText(reportOf(text).text, namespaceOf(this.agent.agent));
  }

  /** Return whether a note, by its time, is about an approval that has an item of its own. */
  #isAsked(utime) {
    return this.askedAt.some((asked) => Math.abs(asked - utime) < SAME_MOMENT_US);
  }
}

/** Return an entry's text, without the names of gates if it is an agent's report of a stop, worded for terminals. */
function ownText(role, text) {
  const [, report] = (role === "assistant" && STOPPED.exec(text)) || [];
  return report ? withoutGates(report) : text;
}

/** Return items in which all but the newest of many notes in a row are folded into one. */
function folded(items) {
  const kept = [];
  let run = [];
  for (const item of [...items, null]) {
    if (item?.kind === "note" && !item.bad) {
      run.push(item);
      continue;
    }
    const hidden = run.length > MAX_NOTES ? run.splice(0, run.length - 1) : [];
    if (hidden.length > 0) kept.push({ key: `notes ${hidden[0].key}`, utime: hidden[0].utime, kind: "notes", notes: hidden, text: String(hidden.length) });
    kept.push(...run);
    run = [];
    if (item) kept.push(item);
  }
  return kept;
}
