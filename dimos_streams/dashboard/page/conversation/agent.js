/** One agent: what it does now, and what for. */

import { html } from "../html.js";
import { Ago, Badge, useSecond } from "../parts.js";
import { badgesOf, detailOf } from "./doing.js";

/** What an agent is doing, in three lines that are always there. */
export function AgentState({ agent, ...context }) {
  const detail = detailOf(agent, context.state.calls);
  return html`<div class="agent-state">
    <div class="now">
      <${Badges} agent=${agent} now=${context.now} />
      ${agent.hold && html`<${Hold} hold=${agent.hold} />`}
    </div>
    <p class="detail" title=${detail}>${detail}</p>
    <${Missions} agent=${agent} ...${context} />
    ${agent.warnings.map((text) => html`<p key=${text} class="warning" role="status">${text}</p>`)}
  </div>`;
}

/** What it does or waits for. @param {{agent: object, now: () => number}} given */
export function Badges({ agent, now }) {
  useSecond(() => badgesOf(agent, now()).map(({ text }) => text).join()); // it counts down
  return html`<span class="states">${badgesOf(agent, now()).map(({ kind, text }, place) => html`<${Badge} key=${place} kind=${kind}>${text}<//>`)}</span>`;
}

/** Only the velocity gates know whether the robot is kept still. */
function Hold({ hold }) {
  const held = hold.held.length > 0 && hold.not_held.length === 0;
  const missing = hold.not_held.map((gate) => `${gate.gate}: ${gate.text}`).join("; ");
  const text = held ? `the robot stands, held by ${hold.held.join(", ")}`
    : `NOT held: ${missing || "no velocity gate was heard, nothing confirms that a robot stands"}`;
  return html`<p class=${`held ${held ? "good-text" : "bad"}`} role=${held ? "status" : "alert"}>${text}</p>`;
}

/** A mission is ended by cancelling the call that it began with, as long as that is open. */
function Missions({ agent, state, connected, readOnly, ask, now }) {
  const open = new Set(state.calls.map((call) => call.call_id));
  if (agent.missions.length === 0) return html`<p class="missions quiet">No mission${agent.calls.length > 0 ? "; its calls go on" : ""}.</p>`;
  return html`<ul class="missions" aria-label="Missions">${agent.missions.map((mission) => html`<li key=${mission.id}>
    <span class="text" title=${mission.text}>${mission.text}</span> <${Ago} utime=${mission.utime} now=${now} />
    ${open.has(mission.id) && !readOnly && html`<button type="button" class="small" disabled=${!connected}
      aria-label=${`Cancel the mission “${mission.text}”`} onClick=${() => ask({ command: "cancel", call_id: mission.id })}>Cancel</button>`}
  </li>`)}</ul>`;
}
