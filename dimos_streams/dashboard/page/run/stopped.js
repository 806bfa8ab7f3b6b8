/** The robots that an operator has stopped, with the gates that do not confirm it. */

import { html } from "htm/preact";
import { Ago } from "../parts.js";

/** @param {import("../session.js").Context} context */
export function Stopped({ state, order, now, readOnly }) {
  const { stops, held, not_held: missing } = state.stopped;
  if (stops.length === 0) return null;
  return html`<section class="stopped" role="alert" aria-label="Stopped">
    <ul>${stops.map(({ robot, utime, reason }) => html`<li key=${robot}>
      <span><b>${robot || "Every robot"}</b> is stopped since <${Ago} utime=${utime} now=${now} />${reason && `: ${reason}`}</span>
      ${!readOnly && html`<button type="button" onClick=${() => order("robots/release", { robot })}>Release</button>`}
    </li>`)}</ul>
    ${missing.map(({ gate, text }) => html`<p key=${gate} class="bad">NOT held: ${gate}: ${text}</p>`)}
    ${held.length > 0 && html`<p>held by ${held.join(", ")}</p>`}
  </section>`;
}
