/** The robots that an operator has stopped, and whether they stand still; in the page's head. */

import { isIn } from "../format.js";
import { heldBy, heldLines } from "../held.js";
import { html } from "../html.js";
import { Ago } from "../times.js";

export function Stopped({ session: { state, order, now, readOnly } }) {
  const { stops, released = [] } = state.stopped;
  if (stops.length === 0) return null;
  const seen = stops.map(({ utime }) => utime);
  return html`<section class="stopped" role="alert" aria-label="Stopped">
    <ul>${stops.map(({ robot, utime, reason }) => html`<li key=${robot}>
      <span><b>${robot || "Every robot"}${but(released.filter((name) => isIn(name, robot)))} is stopped</b> <${Ago} utime=${utime} now=${now} />${reason && html`<span class="quiet">: ${reason}</span>`}</span>
      ${!readOnly && html`<button type="button" onClick=${() => order("robots/release", { robot, seen })}>Release</button>`}
    </li>`)}</ul>
    ${heldLines(state.stopped).map(({ text, isGood }) => html`<p key=${text} class=${isGood ? "good-text" : "bad"} title=${heldBy(state.stopped)}>${text}</p>`)}
  </section>`;
}

/** @param {string[]} released robots that may move although the order is for them, too */
function but(released) {
  return released.length > 0 ? ` but ${released.join(", ")}` : "";
}
