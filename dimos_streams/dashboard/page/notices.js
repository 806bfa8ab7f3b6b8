/** What became of orders, for a while; what has gone wrong stays until it is dismissed. */

import { html } from "./html.js";

export function Notices({ session, notices }) {
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.map((notice) => html`<p key=${notice.key} class=${notice.bad ? "bad" : ""}>
      <span>${notice.text}</span>
      <button type="button" class="plain" aria-label="Dismiss" onClick=${() => session.dismiss(notice.key)}>✕</button>
    </p>`)}
  </div>`;
}
