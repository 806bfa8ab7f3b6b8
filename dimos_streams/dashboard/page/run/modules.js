/** The modules of the run with their health. */

import { html } from "../html.js";
import { memo } from "../memo.js";
import { Badge, Empty, Panel } from "../parts.js";
import { hasEnded, isWell } from "./unwell.js";

export function ModulesPanel({ session }) {
  return html`<${Modules} modules=${session.state.modules} robot=${session.robot} session=${session} />`;
}

const Modules = memo(({ modules, session }) => {
  const shown = modules.filter((module) => session.shows(module.name));
  const note = html`<span class="quiet">${inAll(shown)}</span>`;
  return html`<${Panel} title="Modules" area="modules" note=${shown.length > 0 && note}>
    ${shown.length === 0 && html`<${Empty}>No module has been heard of.<//>`}
    <ul class="rows" tabindex="0" aria-label="Modules and their health">${shown.toSorted(unwellFirst).map((module) => html`<li key=${module.name}>
      <span class="line"><b>${module.name}</b> <${Badge} kind=${hasEnded(module) ? "ended" : isWell(module) ? "ok" : "failed"}>${module.health}<//></span>
      <span class="quiet">${module.state["velocity_gate"] ? `${gateText(module.state["velocity_gate"])} · ` : ""}pid ${module.pid}</span></li>`)}</ul>
  <//>`;
});

/** Return the health of all modules in a few words. */
function inAll(shown) {
  const ended = shown.filter(hasEnded).length;
  const unwell = shown.filter((module) => !isWell(module)).length - ended;
  if (unwell > 0) return `${unwell} of ${shown.length} not well`;
  if (ended > 0) return ended === shown.length ? "all have ended" : `${ended} of ${shown.length} have ended`;
  return `all ${shown.length} well`;
}

function unwellFirst(one, other) {
  return isWell(one) - isWell(other);
}

/** Return the state that a velocity gate reports, in words. */
function gateText(gate) {
  if (!gate.listens) return "can’t be told to keep the robot still";
  const holds = Array.isArray(gate.holds) ? gate.holds : [];
  return holds.length > 0 ? `keeps the robot still for ${holds.join(", ")}` : "lets the robot drive";
}
