/** The looks of calls' states: a word, a colour of `base.css`, and a sign for those who can't tell colours apart. */

import { isMission, isReview } from "./families.js";

/** @typedef {{word: string, colour: string, sign: string, dash: number[], hatched: boolean}} Look
 * `sign` is the SVG path of a sign of 12 by 12 pixels. */

const RING = "M6 1.5a4.5 4.5 0 1 0 .01 0z";
const look = (word, colour, sign, { dash = [], hatched = false } = {}) => ({ word, colour, sign, dash, hatched });

/** @type {Record<string, Look>} */
export const LOOKS = {
  asked: look("waits for approval", "warn", "M3.5 2.5v7M8.5 2.5v7", { dash: [4, 3] }),
  requested: look("requested", "quiet", "M2.5 6h.01M6 6h.01M9.5 6h.01", { dash: [4, 3] }),
  open: look("running", "accent", "M4 2.5v7l5.5-3.5z"),
  completed: look("completed", "good", "M2 6.5L5 9.5L10 3"),
  failed: look("failed", "bad", "M3 3L9 9M9 3L3 9", { hatched: true }),
  cancelled: look("cancelled", "quiet", "M3 3h6v6h-6z"),
  timed_out: look("timed out", "warn", `${RING}M6 3.5V6l2 1.3`),
  lost: look("lost", "bad", "M4 4.2a2 2 0 1 1 2.6 1.9c-.4.2-.6.5-.6 1M6 9.4v.2", { dash: [2, 2], hatched: true }),
  rejected: look("rejected", "bad", `${RING}M2.9 2.9l6.2 6.2`, { dash: [4, 3] }),
  unknown: look("end not heard", "quiet", "M4 4.2a2 2 0 1 1 2.6 1.9c-.4.2-.6.5-.6 1M6 9.4v.2", { dash: [2, 2] }),
};

/** The text with which the bridge closes a review whose call has begun: the answer was yes. */
const BEGUN = "the call has begun";
/** Reasons of missions that an operator has ended. To programs they have failed, but nothing went wrong. */
const ENDED_BY_OPERATORS = ["aborted", "call_cancelled", "cancelled"];

/** Return the state of a call after its `close`, as people see it. */
export function endedAs({ module, skill, text, data: { outcome, result } }) {
  const call = { module, skill };
  if (isReview(call) && text === BEGUN) return "completed";
  if (outcome === "failed" && isMission(call) && ENDED_BY_OPERATORS.includes(result?.reason)) return "cancelled";
  return typeof outcome === "string" && outcome ? outcome : "failed";
}

/** @param {string} state @returns {Look} */
export function lookOf(state) {
  return Object.hasOwn(LOOKS, state) ? LOOKS[state] : LOOKS.unknown;
}
