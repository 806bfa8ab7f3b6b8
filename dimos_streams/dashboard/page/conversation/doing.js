/** An agent's present activity in a few words. No DOM. */

import { counted, namespaceOf, skillTitle, spanText } from "../format.js";
import { reasonText } from "../reasons.js";
import { Echoes } from "./echoes.js";
import { reportOf } from "./report.js";

const STATES = {
  idle: "idle", streaming: "thinks", executing: "acts", settling: "ends calls", undoing: "takes back", closed: "ended",
};

/**
 * Return an agent's badges, those for what stands in its way before those for what it does.
 * @param {object} agent its snapshot @param {number} now µs
 * @returns {{kind: string, text: string}[]} `kind` is a class of badges
 */
export function badgesOf(agent, now) {
  const found = [];
  const { approvals, waiting_calls: waiting, retry, mode } = agent;
  const asks = approvals.length;
  if (asks > 0) found.push({ kind: "asks", text: asks === 1 ? "waits for approval" : `waits for ${counted(asks, "approval")}` });
  if (waiting.length > 0) found.push({ kind: "asks", text: "waits for your step" });
  if (retry) found.push({ kind: "failed", text: `model fails, ${againText(retry, now)}` });
  // A paused agent begins nothing: that it idles or acts is not worth a badge.
  if (found.length === 0 && (mode !== "paused" || !["idle", "executing"].includes(agent.state))) found.push(stateOf(agent));
  if (mode !== "running") found.push({ kind: mode, text: mode === "stepping" ? "step by step" : mode });
  return found;
}

/** Return the badge of an agent's state; an agent with running calls is not idle. */
function stateOf({ state, calls }) {
  const kind = state === "idle" && calls.length > 0 ? "executing" : state;
  return { kind, text: STATES[kind] ?? kind };
}

function againText({ again_utime: again }, now) {
  return again > now ? `asked again in ${spanText((again - now) / 1e6)}` : "is asked again";
}

/**
 * Return the text below the badges: why the agent waits, or what its newest call says.
 * @param {object} agent its snapshot @param {object[]} lines the monitor's calls
 */
export function detailOf(agent, lines) {
  const [approval] = agent.approvals;
  const named = (skill) => skillTitle(skill, namespaceOf(agent.agent));
  if (approval) return `${named(approval.skill)} begins when you approve it, below.`;
  if (agent.retry) return reasonText(agent.retry.error, namespaceOf(agent.agent));
  if (agent.paused_for) return agent.paused_for;
  const own = new Set(agent.calls);
  const newest = lines.findLast(({ call_id: id, text }) => own.has(id) && text);
  return newest ? `${named(newest.skill)}: ${newest.text}` : "";
}

/**
 * Return the newest entry of a conversation as text, except what the agent only repeats of a call; null if none.
 * @param {object[]} entries oldest first @param {string} agent
 */
export function newestWords(entries, agent) {
  const echoes = Echoes.of(entries);
  const newest = entries.findLast(({ role, text }) => role !== "assistant" || !echoes.has(text));
  if (!newest) return null;
  const { role, utime } = newest;
  const text = role === "operator" || role === "assistant" ? newest.text : reasonText(reportOf(newest.text).text, namespaceOf(agent));
  return { utime, text: role === "operator" ? `You: ${text}` : text };
}
