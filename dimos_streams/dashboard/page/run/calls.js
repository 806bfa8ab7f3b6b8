/** The open calls, and the resources that they hold. */

import { html } from "../html.js";
import { CallName, CancelCall } from "../calls/buttons.js";
import { Badge, Empty, Panel, Written } from "../parts.js";
import { Ago } from "../times.js";

export function CallsPanel({ session }) {
  const { state, connected, order, now, readOnly, robot } = session;
  const missions = new Set(Object.values(state.agents).flatMap((agent) => agent.missions.map(({ id }) => id)));
  const calls = state.calls.filter((call) => session.shows(call.module) && !missions.has(call.call_id));
  const skills = new Map(calls.map((call) => [call.call_id, call.skill]));
  const leases = Object.entries(state.leases).filter(([, holder]) => !robot || skills.has(holder));
  const tools = calls.length > 0 && !readOnly && html`<button type="button" disabled=${!connected}
    onClick=${() => order("calls/cancel", { robot, reason: "cancelled on the operator's page" })}>Cancel all</button>`;
  return html`<${Panel} title="Calls" area="calls" tools=${tools}>
    ${calls.length === 0 && html`<${Empty}>No call is open: no skill runs.<//>`}
    ${state.not_ending.length > 0 && html`<ul class="rows bad">${state.not_ending.map((late) => html`<li key=${late.call_id}>
      <code>${late.skill}</code> was asked to end <${Ago} utime=${late.since_utime} now=${now} /> and goes on
      <span class="quiet"> ${late.call_id}</span></li>`)}</ul>`}
    <ul class="rows calls">${inFamilies(calls).map((call) => html`<${CallRow} key=${call.call_id} call=${call} session=${session} />`)}</ul>
    ${leases.length > 0 && html`<h3>In use</h3><ul class="rows">${leases.map(([resource, holder]) => html`<li key=${resource}>
      <code>${resource}</code> by ${skills.get(holder) ?? "call"} <span class="quiet">${holder}</span></li>`)}</ul>`}
  <//>`;
}

/** Sort calls so that each is followed by its children, whose ids begin with its id and a tilde. */
function inFamilies(calls) {
  const places = new Map(calls.map((call, place) => [call.call_id, String(place).padStart(6, "0")]));
  const lineOf = (id) => id.split("~").map((_, end, parts) => places.get(parts.slice(0, end + 1).join("~")) ?? "").join(" ");
  return calls.toSorted((one, other) => (lineOf(one.call_id) < lineOf(other.call_id) ? -1 : 1));
}

function CallRow({ call, session }) {
  const depth = Math.min(call.call_id.split("~").length - 1, 4);
  return html`<li class=${`deep${depth} ${session.selected === call.call_id ? "selected" : ""}`}>
    <div class="line">
      <${CallName} id=${call.call_id} session=${session}>${call.skill}<//>
      ${call.state !== "open" && html`<${Badge}>${call.state}<//>`}
      <${Ago} utime=${call.requested_utime} now=${session.now} />
      <${CancelCall} id=${call.call_id} what=${call.skill} session=${session} />
    </div>
    <p class="words">${call.text}</p>
    <p class="quiet"><${Written} call=${call} length=${160} /> for ${call.caller} · ${call.module} · ${call.call_id}</p>
  </li>`;
}
