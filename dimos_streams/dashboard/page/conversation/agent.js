/** One agent: its state, its robot's hold, its missions, and the operator's hand on it. */

import { html } from "htm/preact";
import { counted } from "../format.js";
import { Ago, Badge, Written } from "../parts.js";

export function AgentState({ name, agent, ...context }) {
  return html`<div class="agent-state">
    <div class="line"><h3>${name}</h3><${Badge} kind=${agent.state}>${agent.state}<//><${Badge} kind=${agent.mode}>${agent.mode}<//></div>
    ${agent.hold && html`<${Hold} hold=${agent.hold} />`}
    ${agent.warnings.map((text) => html`<p key=${text} class="bad" role="status">${text}</p>`)}
    ${!context.readOnly && html`<${Controls} name=${name} agent=${agent} ...${context} />`}
    <${Missions} agent=${agent} ...${context} />
    ${agent.waiting_calls.length > 0 && html`<h4>Waiting for a step</h4>
      <ol>${agent.waiting_calls.map((waiting) => html`<li key=${waiting.tool_call_id}><${Written} call=${waiting} /></li>`)}</ol>`}
    <p class="quiet">${factsText(agent)}</p>
  </div>`;
}

/** Only the velocity gates know whether the robot is kept still. */
function Hold({ hold }) {
  const held = hold.held.length > 0 && hold.not_held.length === 0;
  const missing = hold.not_held.map((gate) => `${gate.gate}: ${gate.text}`).join("; ");
  const text = held ? `held by ${hold.held.join(", ")}`
    : `NOT held: ${missing || "no velocity gate was heard, nothing confirms that a robot stands"}`;
  return html`<p class=${`held ${held ? "" : "bad"}`} role=${held ? "status" : "alert"}>${text}</p>`;
}

/** Buttons that would do nothing are disabled. */
function Controls({ name, agent, connected, ask }) {
  const on = connected && agent.state !== "closed";
  const busy = agent.state !== "idle" || agent.missions.length + agent.calls.length + agent.queue.waiting > 0;
  const control = (label, command, enabled, title, kind = "") => html`<button type="button" class=${kind} title=${title}
    disabled=${!(on && enabled)} onClick=${() => ask(command)}>${label}</button>`;
  return html`<div class="controls" role="group" aria-label=${`Control ${name}`}>
    ${control("Pause", { command: "pause", agent: name }, agent.mode !== "paused", "Hold the robot still and begin nothing new")}
    ${control("Resume", { command: "resume", agent: name }, agent.mode !== "running", "Go on, and leave step mode")}
    ${control("Step mode", { command: "step", agent: name, mode: "on" }, agent.mode !== "stepping", "Let calls begin one by one")}
    ${control("Step", { command: "step", agent: name, mode: "once" },
      agent.mode === "stepping" && agent.waiting_calls.length > 0, "Let the oldest call go")}
    ${control("Undo", { command: "undo", agent: name, count: 1 }, agent.state === "idle", "Take back the newest call")}
    ${control("Forget", { command: "forget", agent: name }, true, "Begin a new conversation; the record stays")}
    ${control("Abort", { command: "abort", agent: name, rollback: false }, busy, "End all missions and their calls", "danger")}
    ${control("Abort and roll back", { command: "abort", agent: name, rollback: true }, busy,
      "End them and take back what they have done", "danger")}
  </div>`;
}

/** A mission is ended by cancelling the call that it began with, as long as that is open. */
function Missions({ agent, state, connected, readOnly, ask, now }) {
  const open = new Set(state.calls.map((call) => call.call_id));
  if (agent.missions.length === 0) return null;
  return html`<h4>Missions</h4><ul class="rows">${agent.missions.map((mission) => html`<li key=${mission.id} class="line">
    <span class="text">${mission.text}</span> <${Ago} utime=${mission.utime} now=${now} />
    ${open.has(mission.id) && !readOnly && html`<button type="button" disabled=${!connected}
      aria-label=${`Cancel the mission “${mission.text}”`} onClick=${() => ask({ command: "cancel", call_id: mission.id })}>Cancel</button>`}
  </li>`)}</ul>`;
}

function factsText(agent) {
  const { requests, input_tokens: input, output_tokens: output, cost } = agent.usage;
  const spent = cost === null ? "cost not known" : `$${cost.toFixed(4)}`;
  const waiting = agent.queue.waiting > 0 ? `queue ${agent.queue.waiting} of ${agent.queue.capacity}` : "";
  const turn = agent.state === "idle" ? "" : `answer ${agent.iteration} of this turn`;
  const tokens = `${input.toLocaleString()} tokens in, ${output.toLocaleString()} out`;
  return [`Model ${agent.model}`, counted(requests, "request"), tokens, spent, turn, waiting,
    `without a console: ${agent.on_console_loss}`].filter(Boolean).join(" · ");
}
