/** The newest events of the run, newest first. */

import { useState } from "preact/hooks";
import { html } from "../html.js";
import { memo } from "../memo.js";
import { Empty, Panel } from "../parts.js";
import { Time } from "../times.js";

export function EventsPanel({ session: { run } }) {
  const [everyStep, become] = useState(false);
  const tools = html`<button type="button" aria-pressed=${String(everyStep)} onClick=${() => become(!everyStep)}>Every step</button>`;
  return html`<${Panel} title="Events" area="events" tools=${tools}><${Events} events=${everyStep ? run.steps : run.events} /><//>`;
}

const Events = memo(({ events }) => events.length === 0
  ? html`<${Empty}>Nothing has happened yet.<//>`
  : html`<ol class="log" tabindex="0" aria-label="Events, newest first">
      ${events.map((event) => html`<${EventRow} key=${event.key} event=${event} />`)}</ol>`);

const EventRow = memo(({ event }) => html`<li class=${event.bad ? "bad" : ""}>
  <${Time} utime=${event.utime} /><p><b>${event.who}</b> <i>${event.kind.replaceAll("_", " ")}</i> ${event.text}</p></li>`);
