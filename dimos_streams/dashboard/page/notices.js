/** Notices about the results of orders. They vanish after a while; errors stay until they are dismissed. */

import { html } from "./html.js";

export function Notices({ session, notices }) {
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.map((notice) => html`<p key=${notice.key} class=${notice.bad ? "bad" : ""}>
      <span>${notice.text}</span>
      <button type="button" class="plain" aria-label="Dismiss" onClick=${() => session.dismiss(notice.key)}>✕</button>
    </p>`)}
  </div>`;
}
