/** The state of one agent: what it does now, and for which missions. */

import { html } from "../html.js";
import { CancelCall } from "../calls/buttons.js";
import { Badge } from "../parts.js";
import { Ago, useSecond } from "../times.js";
import { heldBy, heldLines } from "../held.js";
import { badgesOf, detailOf } from "./doing.js";

/** The present state of an agent, in three lines that are always there. */
export function AgentState({ agent, session }) {
  const detail = detailOf(agent, session.state.calls);
  return html`<div class="agent-state">
    <div class="now">
      <${Badges} agent=${agent} now=${session.now} />
      ${agent.hold && html`<${Hold} hold=${agent.hold} />`}
    </div>
    <p class="detail" title=${agent.retry?.error ?? detail}>${detail}</p>
    <${Missions} agent=${agent} session=${session} />
    ${agent.warnings.map((text) => html`<p key=${text} class="warning" role="status">${text}</p>`)}
  </div>`;
}

/** Badges that say what an agent does or waits for. @param {{agent: object, now: () => number}} given */
export function Badges({ agent, now }) {
  useSecond(() => badgesOf(agent, now()).map(({ text }) => text).join()); // some of them count down
  return html`<span class="states">${badgesOf(agent, now()).map(({ kind, text }, place) => html`<${Badge} key=${place} kind=${kind}>${text}<//>`)}</span>`;
}

function Hold({ hold }) {
  const lines = heldLines(hold);
  const isGood = lines.every((line) => line.isGood);
  return html`<p class=${`held ${isGood ? "good-text" : "bad"}`} role=${isGood ? "status" : "alert"} title=${heldBy(hold)}>${lines.map(({ text }) => text).join("; ")}</p>`;
}

function whyNone({ state, calls }) {
  if (state === "closed") return "it has ended";
  return calls.length > 0 ? "its calls go on" : "it waits for what you say";
}

/** An agent's missions. One is ended by cancelling the call that it began with, as long as that is open. */
function Missions({ agent, session }) {
  const open = new Set(session.state.calls.map((call) => call.call_id));
  if (agent.missions.length === 0) return html`<p class="missions quiet">No mission: ${whyNone(agent)}.</p>`;
  return html`<ul class="missions" aria-label="Missions">${agent.missions.map((mission) => html`<li key=${mission.id}>
    <span class="text" title=${mission.text}>${mission.text}</span> <${Ago} utime=${mission.utime} now=${session.now} />
    ${open.has(mission.id) && html`<${CancelCall} id=${mission.id} what=${`the mission “${mission.text}”`} session=${session} />`}
  </li>`)}</ul>`;
}
