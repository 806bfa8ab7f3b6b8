/** The buttons of a call, wherever it is listed. */

import { html } from "../html.js";

/** The name of a call. It highlights the call everywhere, or lets go of it. */
export function CallName({ id, session, children }) {
  return html`<button type="button" class="name" aria-pressed=${String(session.selected === id)} title="Highlight this call everywhere"
    onClick=${() => session.toggle(id)}>${children}</button>`;
}

/** A button that cancels a call; a recording has none. `what` names the call for screen readers. */
export function CancelCall({ id, what, session }) {
  return !session.readOnly && html`<button type="button" class="small" disabled=${!session.connected} aria-label=${`Cancel ${what}`}
    onClick=${() => session.ask({ command: "cancel", call_id: id })}>Cancel</button>`;
}
