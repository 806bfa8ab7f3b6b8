/** Agents' events, and the results of commands to them, in words. */

import { listed } from "./format.js";
import { withoutGates } from "./held.js";
import { causeText, reasonText } from "./reasons.js";

/** Return the result of a command in words. */
export function outcome(answer) {
  const { command, result, text, errors } = answer;
  if (answer.type === "error") {
    const fields = Object.entries(errors ?? {}).map(([field, problem]) => `${field}: ${problem}`).join("; ");
    return text.includes(fields) ? reasonText(text) : `${text}; ${fields}`;
  }
  const kept = result?.unkept ? `; NOT KEPT: ${result.unkept}` : "";
  if (command === "decide" || command === "amend") return rendered({ approval: result }) + kept;
  if (command !== "undo") return withoutGates(text);
  const lines = result.undone.map((undone) => `${undone.skill}: ${undone.how}, ${undone.text}`);
  const count = result.undone.filter((undone) => undone.how === "undone").length;
  if (result.asked > 1) lines.push(`${count} of ${result.asked} undone`);
  if (result.found < result.asked) lines.push(result.found ? "there is nothing else" : "there is nothing");
  return lines.join("; ") + kept;
}

/** Return an event's data as a line of text. @param {string} space the agent's */
export function rendered(data, space = "") {
  if (data.approval) return `${data.approval.skill}(${listed(data.approval.arguments)}): ${data.approval.state}`;
  if (data.plan) return `${data.plan.goal}: ${data.plan.state}`;
  if (data.reason === "call_failed") return causeText(data.reason, data.text, space);
  return [data.phase, data.reason, data.text && reasonText(data.text, space)].filter(Boolean).join(": ") || listed(Object.fromEntries(Object.entries(data).filter(([name, value]) => name !== "was" && value !== "")));
}
