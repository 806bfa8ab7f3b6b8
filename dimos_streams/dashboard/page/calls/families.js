/** Which calls belong together: a mission with what its agent called for it, and a call with those that its skill runs. */

import { bareSkill, clipped, namespaceOf } from "../format.js";

/** @typedef {import("../timeline/calls.js").Call} Call */

/** A child's id is its parent's with `~` and a number behind it; a call that is to go on by itself has `.` there. */
const ASKED = /^(.+)[~.][0-9]+$/;

/** The ids of the calls that a call's id says it was asked for by, the nearest first. @param {string} id */
export function askersOf(id) {
  const found = [];
  for (let match = ASKED.exec(id); match; match = ASKED.exec(match[1])) found.push(match[1]);
  return found;
}

/** A call's skill without the namespace that stands before it. @param {Call} call */
export function skillOf({ module, skill }) {
  return bareSkill(skill, namespaceOf(module));
}

/** Whether a call is an operator's mission: a call of an agent's `say`. @param {Call} call */
export function isMission(call) {
  return skillOf(call) === "say";
}

/** A mission is called by what was said. @param {Call} call */
export function missionTitle(call) {
  return `“${clipped(String(call.arguments.text ?? "…"), 80)}”`;
}

/** Whether an agent is asked by the bridge if a call may begin that one of its calls asks for. @param {Call} call */
export function isReview(call) {
  return skillOf(call) === "review_call";
}

/**
 * The call that each one belongs to, by id; calls that belong to none are left out.
 *
 * What an agent calls belongs to a mission of it. Which one the agent says in its conversation (`missionOf`); of what it says
 * no more, it is the newest that was under way then.
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

/** Whether a call belongs to another one, or is it; ids come from outside and may go round. */
function leadsTo(parents, from, to) {
  for (let id = from; id; id = parents.get(id)) if (id === to) return true;
  return false;
}
