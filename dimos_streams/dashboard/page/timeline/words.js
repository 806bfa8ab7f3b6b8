/** Calls in words. */

import { givenText, namespaceOf, skillTitle, titled } from "../format.js";
import { reportOf } from "../conversation/report.js";
import { reasonText } from "../reasons.js";
import { clipped } from "../texts.js";
import { isMission, isReview, missionTitle, skillOf } from "../calls/families.js";
import { lookOf } from "../calls/outcomes.js";
import { tookText } from "./scale.js";

/** @typedef {import("./calls.js").Call} Call */

/** Return the title of a call's skill, without its robot, which is shown beside it. */
export function nameOf(call) {
  return titled(skillOf(call));
}

/** Words for operators' decisions, without the approval's id, which nobody would recognise. */
const DECIDED = { approve: "Approved", reject: "Rejected", delete: "Deleted" };

/** Return the label of a call's bar. */
export function labelOf(call) {
  if (isMission(call)) return missionTitle(call);
  if (isDecision(call)) return DECIDED[call.arguments.decision];
  if (isReview(call)) return `May ${skillTitle(String(call.arguments.skill ?? ""), namespaceOf(call.module))} begin?`;
  const plain = Object.entries(call.arguments).filter(([, value]) => typeof value !== "object");
  const words = plain.filter(([, value]) => typeof value === "string");
  const given = givenText(Object.fromEntries(words.some(([, value]) => value) ? words : plain));
  const share = call.fraction !== null && call.end === null ? ` ${Math.round(call.fraction * 100)} %` : "";
  const waits = call.state === "asked" ? " waits for approval" : "";
  return `${nameOf(call)}${waits}${share}${given ? ` · ${clipped(given, 60)}` : ""}`;
}

/** Return the newest text of a call, but not its progress; for a mission, what stands in its way, or why it failed.
 * */
export function saidOf(call) {
  if (call.state === "completed" && (isMission(call) || isDecision(call) || isReview(call))) return "";
  if (call.end !== null || call.state === "asked") return plain(call, call.text);
  const last = call.ticks.at(-1);
  return last && (!isMission(call) || last.isNote) ? plain(call, last.text) : "";
}

/** Return a text of a call as people would say it. */
export function plain(call, text) {
  return reasonText(reportOf(text).text || text, namespaceOf(call.module));
}

function isDecision(call) {
  return skillOf(call) === "decide" && Object.hasOwn(DECIDED, call.arguments.decision);
}

/** Return what was asked for: a skill with arguments, or for a mission, what the operator said. */
export function askedFor(call) {
  if (isMission(call)) return `Mission ${labelOf(call)}`;
  if (isReview(call)) return labelOf(call);
  const given = clipped(givenText(call.arguments), 120);
  return `${nameOf(call)}${given ? ` · ${given}` : ""}`;
}

/** Return how long a call has run, or took. */
export function took({ begin, end }, now) {
  return end === null ? `for ${tookText(now - begin)}` : `after ${tookText(end - begin)}`;
}

/** Return a call with its state in words. */
export function inWords(call, now) {
  const state = `${lookOf(call.state).word}${call.isWhole ? ` ${took(call, now)}` : ""}`;
  return `${askedFor(call)}, ${state}, asked by ${call.caller}${call.text ? `: ${clipped(plain(call, call.text), 160)}` : ""}`;
}
