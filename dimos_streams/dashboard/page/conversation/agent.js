/** One agent: what it does now, and the operator's hand on it. */

import { html } from "htm/preact";
import { Menu } from "../menu.js";
import { Ago, Badge } from "../parts.js";

const STATES = {
  idle: "idle", streaming: "thinks", executing: "acts", settling: "ends calls", undoing: "takes back", closed: "closed",
};

/** What an agent is doing, in two lines that are always there. */
export function AgentState({ name, agent, ...context }) {
  const mode = agent.mode === "running" ? "" : agent.mode;
  return html`<div class="agent-state">
    <div class="now">
      <span class="states"><${Badge} kind=${agent.state}>${stateText(agent)}<//>${mode && html`<${Badge} kind=${mode}>${mode}<//>`}</span>
      ${agent.hold && html`<${Hold} hold=${agent.hold} />`}
      ${!context.readOnly && html`<${Controls} name=${name} agent=${agent} ...${context} />`}
    </div>
    <${Missions} agent=${agent} ...${context} />
    ${agent.warnings.map((text) => html`<p key=${text} class="bad" role="status">${text}</p>`)}
  </div>`;
}

/** The loop's state, in words for people: an agent whose calls go on is not idle. */
function stateText(agent) {
  if (agent.state === "idle" && agent.calls.length > 0) return "watches";
  return STATES[agent.state] ?? agent.state;
}

/** Only the velocity gates know whether the robot is kept still. */
function Hold({ hold }) {
  const held = hold.held.length > 0 && hold.not_held.length === 0;
  const missing = hold.not_held.map((gate) => `${gate.gate}: ${gate.text}`).join("; ");
  const text = held ? `held by ${hold.held.join(", ")}`
    : `NOT held: ${missing || "no velocity gate was heard, nothing confirms that a robot stands"}`;
  return html`<p class=${`held ${held ? "good-text" : "bad"}`} role=${held ? "status" : "alert"}>${text}</p>`;
}

/** Buttons that would do nothing are disabled. */
function Controls({ name, agent, connected, ask }) {
  const on = connected && agent.state !== "closed";
  const busy = agent.state !== "idle" || agent.missions.length + agent.calls.length + agent.queue.waiting > 0;
  const control = (label, command, enabled, title, kind = "") => html`<button type="button" class=${kind} title=${title}
    disabled=${!(on && enabled)} onClick=${() => ask(command)}>${label}</button>`;
  const steps = agent.mode === "stepping";
  return html`<div class="controls" role="group" aria-label=${`Control ${name}`}>
    ${steps && control("Step", { command: "step", agent: name, mode: "once" }, agent.waiting_calls.length > 0, "Let the oldest call go")}
    ${agent.mode !== "running" && control("Resume", { command: "resume", agent: name }, true, "Go on, and leave step mode", "primary")}
    ${agent.mode !== "paused" && control("Pause", { command: "pause", agent: name }, true, "Hold the robot still and begin nothing new (Space)")}
    ${control("Abort", { command: "abort", agent: name, rollback: false }, busy, "End all missions and their calls", "danger")}
    <${Menu} label="More" title=${`More for ${name}`}>
      ${control("Step mode", { command: "step", agent: name, mode: "on" }, !steps, "Let calls begin one by one")}
      ${control("Undo", { command: "undo", agent: name, count: 1 }, agent.state === "idle", "Take back the newest call")}
      ${control("Forget", { command: "forget", agent: name }, true, "Begin a new conversation; the record stays")}
      ${control("Abort and roll back", { command: "abort", agent: name, rollback: true }, busy,
        "End them and take back what they have done", "danger")}
    <//>
  </div>`;
}

/** A mission is ended by cancelling the call that it began with, as long as that is open. */
function Missions({ agent, state, connected, readOnly, ask, now }) {
  const open = new Set(state.calls.map((call) => call.call_id));
  if (agent.missions.length === 0) return html`<p class="missions quiet">No mission. ${agent.calls.length > 0 ? "Its calls go on." : ""}</p>`;
  return html`<ul class="missions" aria-label="Missions">${agent.missions.map((mission) => html`<li key=${mission.id}>
    <span class="text" title=${mission.text}>${mission.text}</span> <${Ago} utime=${mission.utime} now=${now} />
    ${open.has(mission.id) && !readOnly && html`<button type="button" class="small" disabled=${!connected}
      aria-label=${`Cancel the mission “${mission.text}”`} onClick=${() => ask({ command: "cancel", call_id: mission.id })}>Cancel</button>`}
  </li>`)}</ul>`;
}
