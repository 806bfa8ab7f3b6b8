/** Calls in words. */

import { clipped, givenText, namespaceOf, skillTitle, titled } from "../format.js";
import { reportOf } from "../conversation/report.js";
import { reasonText } from "../reasons.js";
import { isMission, isReview, missionTitle, skillOf } from "../calls/families.js";
import { lookOf } from "../calls/outcomes.js";
import { tookText } from "./scale.js";

/** @typedef {import("./calls.js").Call} Call */

/** A skill as people say it; which robot's it is stands beside it. @param {Call} call */
export function nameOf(call) {
  return titled(skillOf(call));
}

/** What operators decide, in their words: nobody knows an approval by its id. */
const DECIDED = { approve: "Approved", reject: "Rejected", delete: "Deleted" };

/** What a call is called on its bar. @param {Call} call */
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

/** What a call has said last, but for what is only its progress; of a mission, what stands in its way, or why it failed.
 * @param {Call} call */
export function saidOf(call) {
  if (call.state === "completed" && (isMission(call) || isDecision(call) || isReview(call))) return "";
  if (call.end !== null || call.state === "asked") return plain(call, call.text);
  const last = call.ticks.at(-1);
  return last && (!isMission(call) || last.isNote) ? plain(call, last.text) : "";
}

/** What a call has said, as people say it. @param {Call} call */
export function plain(call, text) {
  return reasonText(reportOf(text).text || text, namespaceOf(call.module));
}

function isDecision(call) {
  return skillOf(call) === "decide" && call.arguments.decision in DECIDED;
}

/** What was asked for; of a mission, what the operator said. @param {Call} call */
export function askedFor(call) {
  if (isMission(call)) return `Mission ${labelOf(call)}`;
  if (isReview(call)) return labelOf(call);
  const given = clipped(givenText(call.arguments), 120);
  return `${nameOf(call)}${given ? ` · ${given}` : ""}`;
}

/** What a call is, in words. @param {Call} call */
export function inWords(call, now) {
  const took = call.end === null ? `for ${tookText(now - call.begin)}` : `after ${tookText(call.end - call.begin)}`;
  const state = `${lookOf(call.state).word}${call.isWhole ? ` ${took}` : ""}`;
  return `${askedFor(call)}, ${state}, asked by ${call.caller}${call.text ? `: ${clipped(plain(call, call.text), 160)}` : ""}`;
}
