/** Sentences for people from the reasons that programs write down for models and logs. */

import { skillTitle } from "./format.js";
import { withoutGates } from "./held.js";

const BUSY = /^'\S+' needs '([^']+)', which '([^']+)' holds for '[^']+' \((.*)\): call '[^']+'$/s;
/** Matches the note that a call waits for approval. It is rewritten: the form says what is asked, and the wait ends. */
export const ASKS = /^Waits for an operator's decision/;
const TWICE = /^'([^']+)' runs already as call '[^']+' of '([^']+)'/;
const NOT_APPROVED = /^Not run: .* was not approved(?:: (.*))?\. Do not repeat it as it is\.$/s;
const INCOMPLETE = /^the mission did not complete: (\w+)(?: \((.*?)\))?(;.*)?$/s;
const OF_A_CALL = ["call_failed", "call_cancelled"];
const CALL_AND_WHY = /^(\w+): (.*)$/s;
const NO_MODEL = /^(?:the model failed: |The model is asked again in (\S+ s): )?model '([^']+)' at (\S+): (?:the connection failed: )?(?:\w+Error: )?(.*)$/s;
const DISOWNED = /^nobody has acknowledged this call for (.+), so it was ended and the robot was stopped$/;
const ABORTED = /^The operator has aborted everything(: .*?)?\. Do not take it up again unless you are asked to\.(?:\nCalls that were ended: [^\n]*)?(\nCalls that may still run: .*)?$/s;
const UNDONE = /^The operator (?:took a call back|wanted a call taken back)\. (\w+)\(.*\) \(call \S+\) (is undone|could not be undone|can't be undone): (.*)$/s;
const WITHDRAWN = /^the operator has withdrawn (?:this|what led to this call)$/;
const BROKEN_OFF = /^call \S+ was running: (.*)$/s;

const AMENDED = /^approval '\S+' has revision (\d+), not \d+: .* (waits|is (\w+) already.*); to decide on that one, name \S+$/s;
const DECIDED = /^approval '\S+' of .* is (\w+(?: \w+)?) already(?:, by '([^']*)')?(?: \((.*)\))?: it can't /s;

const SAYINGS = [
  [BUSY, ([, needed, holder, says], space) => {
    const what = drives(needed) ? "drives the robot" : `uses “${needed}”`;
    return `${skillTitle(holder, space)} ${what} now (${says}). It has to end first: cancel it, or say stop.`;
  }],
  [AMENDED, ([, , state, decided]) => state === "waits" ? "An operator has changed it meanwhile: look at it again, then decide." : `It was changed, and ${decided} already.`],
  [DECIDED, ([, state, by, why]) => `It was ${state} already${by ? `, by ${by}` : ""}${why ? `: ${why}` : ""}.`],
  [ASKS, () => "Waits for an operator’s approval."],
  [TWICE, ([, skill, caller], space) => `${skillTitle(skill, space)} runs already, for ${caller}. It has to end first: cancel it, or say stop.`],
  [NOT_APPROVED, ([, why]) => `An operator did not approve it${why ? `: ${why}` : ""}.`],
  [INCOMPLETE, ([, reason, why, unfinished], space) => `Not done: ${causeText(reason, why ?? "", space)}${unfinished ?? ""}`],
  [NO_MODEL, ([, pause, model, where, why]) => `The language model can’t be asked: ${why} (${model} at ${where})${pause ? `. It is asked again in ${pause}.` : ""}`],
  [ABORTED, ([, why, running]) => `Everything was aborted${why ?? ""}.${running ?? ""}`],
  [UNDONE, ([, skill, how, text], space) => `${skillTitle(skill, space)} ${how.replace("'", "’")}: ${reasonText(text, space)}`],
  [WITHDRAWN, () => "its mission was cancelled by the operator"],
  [BROKEN_OFF, ([, why], space) => `It was running: ${reasonText(why, space)}`],
  [DISOWNED, ([, bound]) => `Nobody listened to it for ${bound}, as if the connection were lost: it was ended and the robot was stopped.`],
];

/** @param {string} space the namespace of the robot that it is about */
export function reasonText(text, space) {
  for (const [pattern, say] of SAYINGS) {
    const found = pattern.exec(text);
    if (found) return say(found, space);
  }
  return withoutGates(text);
}

/** Return why a mission or a turn has ended; a call that failed is named by the title of its skill. */
export function causeText(reason, why, space) {
  if (!why) return reason.replaceAll("_", " ");
  const [, skill, text] = (OF_A_CALL.includes(reason) && CALL_AND_WHY.exec(why)) || [];
  return skill ? `${skillTitle(skill, space)}: ${reasonText(text, space)}` : reasonText(why, space);
}

/** Return whether a resource is the base of a robot. */
export function drives(resource) {
  return /(?:^|\/)base$/.test(resource);
}
