/** Families of calls: a mission with the calls of its agent for it, and a call with those that its skill makes. */

import { bareSkill, namespaceOf } from "../format.js";
import { clipped } from "../texts.js";

/** @typedef {import("../timeline/calls.js").Call} Call */

/** Matches the id of a child, its parent's with `~` and a number, and that of a continuation, which has a dot there. */
const ASKED = /^(.+)[~.][0-9]+$/;

/** Return the ids of the calls that led to a call, by its own id, nearest first. */
function askersOf(id) {
  const found = [];
  for (let match = ASKED.exec(id); match; match = ASKED.exec(match[1])) found.push(match[1]);
  return found;
}

/** Return the name of a call's skill without its namespace. */
export function skillOf({ module, skill }) {
  return bareSkill(skill, namespaceOf(module));
}

/** Return whether a call is an operator's mission: a call of an agent's `say`. */
export function isMission(call) {
  return skillOf(call) === "say";
}

/** Return the title of a mission: what the operator said, in quotes. */
export function missionTitle(call) {
  return `“${clipped(String(call.arguments.text ?? "…"), 80)}”`;
}

/** Return whether a call is a review: the bridge asks an agent if a child of its call may begin. */
export function isReview(call) {
  return skillOf(call) === "review_call";
}

/** The skills of agents by which programs only look at them. A review is one for the terminal, too; here it shows what a
 * call waits for. */
const LOOKS = new Set(["approvals", "plans", "typing"]);

/** Return whether a call, or the call of an event, is nobody's: a program looks at an agent, which changes nothing.
 * @param {{module: string, skill: string}} call */
export function isLook(call) {
  return LOOKS.has(skillOf(call));
}

/**
 * Return the id of the call that each call belongs to, by id; calls that belong to none are left out.
 *
 * A call that an agent makes belongs to one of its missions: the one that its conversation names (`missionOf`), or if
 * that is no longer known, the newest that was under way when the call began.
 * @param {Iterable<Call>} calls @param {Map<string, string>} missionOf missions by ids of calls
 * @returns {Map<string, string>}
 */
export function parentsOf(calls, missionOf = new Map()) {
  const known = new Map([...calls].map((call) => [call.id, call]));
  const missions = Map.groupBy([...known.values()].filter(isMission), ({ module }) => module);
  const parents = new Map();
  for (const call of known.values()) {
    const parent = [call.parent, ...askersOf(call.id), missionOf.get(call.id)].find((id) => id && id !== call.id && known.has(id))
      ?? newestUnderWay(missions.get(call.caller) ?? [], call)?.id;
    if (parent && !leadsTo(parents, parent, call.id)) parents.set(call.id, parent);
  }
  return parents;
}

function newestUnderWay(missions, call) {
  let found = null;
  for (const mission of missions) {
    const isUnderWay = mission.begin <= call.begin && (mission.end ?? Infinity) >= call.begin;
    if (isUnderWay && mission.id !== call.id && (!found || mission.begin >= found.begin)) found = mission;
  }
  return found;
}

/** Return whether a call is another one or belongs to it. Ids come from outside, so parents could form a circle. */
function leadsTo(parents, from, to) {
  for (let id = from; id; id = parents.get(id)) if (id === to) return true;
  return false;
}

/** Return a key by which an event is recognised. */
export function keyOf({ call_id: id, seq, type }) {
  return `${id} ${seq} ${type}`;
}
