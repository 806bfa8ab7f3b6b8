/** The robots that an operator has stopped, with the gates that do not confirm it. It stands in the page's head. */

import { html } from "../html.js";
import { Ago } from "../parts.js";

/** @param {import("../session.js").Context} context */
export function Stopped({ state, order, now, readOnly }) {
  const { stops, held, not_held: missing } = state.stopped;
  if (stops.length === 0) return null;
  return html`<section class="stopped" role="alert" aria-label="Stopped">
    <ul>${stops.map(({ robot, utime, reason }) => html`<li key=${robot}>
      <span><b>${robot || "Every robot"} is stopped</b> <${Ago} utime=${utime} now=${now} /> ${reason && html`<span class="quiet">${reason}</span>`}</span>
      ${!readOnly && html`<button type="button" onClick=${() => order("robots/release", { robot })}>Release</button>`}
    </li>`)}</ul>
    ${held.length > 0 && html`<p class="good-text">held by ${held.join(", ")}</p>`}
    ${missing.map(({ gate, text }) => html`<p key=${gate} class="bad"><b>NOT held</b>: ${gate}: ${text}</p>`)}
    ${held.length + missing.length === 0 && html`<p class="bad">No velocity gate has said yet that it holds.</p>`}
  </section>`;
}
