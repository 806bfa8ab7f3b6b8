/** Modules that are not well, in the page's head: one that is gone may be the reason why a robot does nothing. */

import { html } from "../html.js";
import { clipped } from "../texts.js";

const MAX_NAMED = 2;

export function Unwell({ modules, session }) {
  const unwell = modules.filter((module) => session.shows(module.name) && !isWell(module) && !hasEnded(module));
  if (unwell.length === 0) return null;
  const texts = unwell.map(({ name, alive, health }) => `${name} ${alive ? clipped(health, 80) : `does not answer (${health})`}`);
  const more = texts.length > MAX_NAMED ? ` and ${texts.length - MAX_NAMED} more` : "";
  return html`<p class="unwell" role="alert" title=${texts.join("\n")}>${texts.slice(0, MAX_NAMED).join(", ")}${more}</p>`;
}

/** Return whether a module answers and reports no problem. */
export function isWell(module) {
  return module.alive && module.health === "ok";
}

/** Return whether a module has announced its own end, as all do when a run is stopped. */
export function hasEnded(module) {
  return module.health === "ended";
}
