/** The modules of the run with their health. */

import { html } from "htm/preact";
import { Badge, Empty, memo, Panel } from "../parts.js";

/** @param {import("../session.js").Context} context */
export function ModulesPanel({ state, session }) {
  return html`<${Modules} modules=${state.modules} robot=${session.robot} session=${session} />`;
}

const Modules = memo(({ modules, session }) => {
  const shown = modules.filter((module) => session.shows(module.name));
  return html`<${Panel} title="Modules" area="modules">
    ${shown.length === 0 && html`<${Empty}>No module has been heard of.<//>`}
    <ul class="rows">${shown.map((module) => html`<li key=${module.name} class="line">
      <b>${module.name}</b>
      <${Badge} kind=${module.alive && module.health === "ok" ? "ok" : "failed"}>${module.health}<//>
      ${module.state["velocity_gate"] && html`<span>${gateText(module.state["velocity_gate"])}</span>`}
      <span class="quiet">pid ${module.pid}</span></li>`)}</ul>
  <//>`;
});

/** What a velocity gate says of itself. */
function gateText(gate) {
  if (!gate.listens) return "does not listen to /hold";
  const holds = Array.isArray(gate.holds) ? gate.holds : [];
  return holds.length > 0 ? `holds for ${holds.join(", ")}` : "holds for nobody";
}
