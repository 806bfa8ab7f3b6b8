/** The plan that an agent has made. */

import { html } from "../html.js";
import { Badge, Written } from "../parts.js";

export function Plan({ plan }) {
  return html`<div class="plan"><h3>Plan: ${plan.goal} <${Badge}>${plan.state}<//></h3>
    ${plan.reason && html`<p>${plan.reason}</p>`}
    <ol>${plan.steps.map((step, place) => html`<li key=${place} class=${step.used ? "quiet" : ""}>
      <${Written} call=${step} />${step.used && " begun"}</li>`)}</ol></div>`;
}
