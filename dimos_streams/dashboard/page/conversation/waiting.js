/** The calls that wait to be let go in step mode, oldest first. */

import { html } from "../html.js";
import { Written } from "../parts.js";

export function Waiting({ name, agent, session: { connected, readOnly, ask } }) {
  const [first, ...others] = agent.waiting_calls;
  return html`<section class="card waiting" aria-label="Waiting for a step">
    <div class="card-head"><span class="dot" aria-hidden="true"></span><span class="name">Waits for your step</span>
      ${!readOnly && html`<button type="button" class="primary small" disabled=${!connected}
        onClick=${() => ask({ command: "step", agent: name, mode: "once", waiting: first.id })}>Step</button>`}</div>
    <p class="words"><${Written} call=${first} /></p>
    ${others.length > 0 && html`<ol class="updates">${others.map((waiting) => html`<li key=${waiting.tool_call_id}>then <${Written} call=${waiting} /></li>`)}</ol>`}
  </section>`;
}
