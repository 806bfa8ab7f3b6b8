/** Calls in words. */

import { clipped, givenText, listed, titled } from "../format.js";
import { isMission, skillOf } from "./families.js";
import { lookOf } from "./outcomes.js";
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
  if (isMission(call)) return `“${clipped(String(call.arguments.text ?? "…"), 80)}”`;
  if (isDecision(call)) return DECIDED[call.arguments.decision];
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
  if (call.state === "completed" && (isMission(call) || isDecision(call))) return "";
  if (call.end !== null || call.state === "asked") return call.text;
  const last = call.ticks.at(-1);
  return last && (!isMission(call) || last.isNote) ? last.text : "";
}

function isDecision(call) {
  return skillOf(call) === "decide" && call.arguments.decision in DECIDED;
}

/** What was asked for, as a program would write it; of a mission, what the operator said. @param {Call} call */
export function askedFor(call) {
  return isMission(call) ? `Mission ${labelOf(call)}` : `${call.skill}(${clipped(listed(call.arguments), 120)})`;
}

/** What a call is, in words. @param {Call} call */
export function inWords(call, now) {
  const took = call.end === null ? `for ${tookText(now - call.begin)}` : `after ${tookText(call.end - call.begin)}`;
  const state = `${lookOf(call.state).word}${call.isWhole ? ` ${took}` : ""}`;
  return `${askedFor(call)}, ${state}, asked by ${call.caller}${call.text ? `: ${clipped(call.text, 160)}` : ""}`;
}
