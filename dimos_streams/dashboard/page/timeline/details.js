/** The details of one call, and the table of all calls in view. */

import { html } from "../html.js";
import { counted, listed } from "../format.js";
import { Empty, Folded } from "../parts.js";
import { Time, useSecond } from "../times.js";
import { clipped } from "../texts.js";
import { APPROVAL } from "./board.js";
import { isMission } from "../calls/families.js";
import { lookOf } from "../calls/outcomes.js";
import { tookText } from "./scale.js";
import { labelOf, nameOf, plain } from "./words.js";

const MAX_ROWS = 100;

/** The sign of a state with its word, so that nobody has to tell colours apart. */
export function State({ state }) {
  const { word, colour, sign } = lookOf(state);
  return html`<span class=${`state ${colour}`}><svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d=${sign} /></svg>${word}</span>`;
}

/** @param {{call: import("./calls.js").Call, layout: import("./layout.js").Layout}} given */
export function Details({ call, layout, session }) {
  const { now, select, connected, ask } = session;
  useSecond();
  const above = layout.byId.get(layout.parents.get(call.id))?.call;
  const below = layout.bars.filter((bar) => layout.parents.get(bar.call.id) === call.id).map((bar) => bar.call);
  const isOpen = call.end === null;
  const canEnd = isOpen && connected && !call.id.startsWith(APPROVAL);
  return html`<div class="details" role="region" aria-label="Details of the call">
    <div class="line"><h3>${isMission(call) ? labelOf(call) : nameOf(call)}</h3><${State} state=${call.state} />
      ${canEnd && html`<button type="button" aria-label=${`Cancel ${call.skill}`} onClick=${() => ask({ command: "cancel", call_id: call.id })}>Cancel</button>`}
      <button type="button" class="plain close" aria-label="Close the details" onClick=${() => select(null)}>✕</button></div>
    ${call.text && html`<p class=${["failed", "lost", "rejected", "timed_out"].includes(call.state) ? "bad" : ""}>${plain(call, call.text)}</p>`}
    <dl>
      <dt>Began</dt><dd>${call.isWhole ? html`<${Time} utime=${call.begin} />` : "before what is known here"}</dd>
      <dt>${isOpen ? "For" : "Took"}</dt><dd>${tookText((call.end ?? now()) - call.begin)}</dd>
      <dt>Asked by</dt><dd>${call.caller}${above && html` for <${Link} call=${above} select=${select} />`}</dd>
      <dt>Runs in</dt><dd>${call.module}</dd>
      ${call.resources.length > 0 && html`<dt>Holds</dt><dd>${call.resources.join(", ")}</dd>`}
      ${below.length > 0 && html`<dt>Asked for</dt><dd>${below.slice(0, 20).map((each, place) => html`${place > 0 && ", "}<${Link} key=${each.id} call=${each} select=${select} />`)}${below.length > 20 && ` and ${below.length - 20} more`}</dd>`}
      ${call.error && html`<dt>Error</dt><dd>${call.error}</dd>`}
      <dt>Id</dt><dd><code>${call.id}</code></dd>
    </dl>
    ${Object.keys(call.arguments).length > 0 && html`<${Folded} summary=${`Arguments: ${clipped(listed(call.arguments), 60)}`} value=${call.arguments} />`}
    ${call.result !== null && html`<${Folded} summary="Result" value=${call.result} />`}
    ${call.ticks.length > 0 && html`<h4>${counted(call.omitted + call.ticks.length, "update")}${call.omitted > 0 ? `, the newest ${call.ticks.length}` : ""}</h4>
      <ol class="updates" reversed>${call.ticks.toReversed().slice(0, MAX_ROWS).map((tick) => html`<li key=${tick.offset} class=${tick.isBad ? "bad" : ""}>
        <${Time} utime=${tick.utime} /> ${plain(call, tick.text) || "(no text)"}</li>`)}</ol>`}
  </div>`;
}

function Link({ call, select }) {
  return html`<button type="button" class="link-like" onClick=${() => select(call.id)}>${isMission(call) ? clipped(labelOf(call), 40) : nameOf(call)}</button>`;
}

/** @param {{bars: import("./layout.js").Bar[]}} given */
export function Table({ bars, session }) {
  const { selected, now } = session;
  useSecond();
  if (bars.length === 0) return html`<${Empty}>No call in this time.<//>`;
  const newest = bars.map(({ call }) => call).sort((one, other) => other.begin - one.begin).slice(0, MAX_ROWS);
  return html`<div class="table" tabindex="0" role="region" aria-label="Table of calls"><table>
    <caption class="hidden">Calls in the time that is shown, the newest first</caption>
    <thead><tr><th scope="col">Call</th><th scope="col">State</th><th scope="col">Began</th><th scope="col">Took</th>
      <th scope="col">Asked by</th><th scope="col">Says</th></tr></thead>
    <tbody>${newest.map((call) => html`<tr key=${call.id} class=${selected === call.id ? "selected" : ""}>
      <th scope="row"><button type="button" class="link-like" aria-pressed=${String(selected === call.id)}
        onClick=${() => session.toggle(call.id)}>${labelOf(call)}</button></th>
      <td><${State} state=${call.state} /></td><td><${Time} utime=${call.begin} /></td><td>${tookText((call.end ?? now()) - call.begin)}</td>
      <td>${call.caller}</td><td>${clipped(plain(call, call.text), 160)}</td></tr>`)}</tbody>
  </table></div>`;
}
