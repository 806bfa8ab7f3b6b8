/** What an agent's model is and has used, on a line. */

import { html } from "htm/preact";
import { counted } from "../format.js";

export function Facts({ agent }) {
  const text = factsText(agent);
  return html`<p class="facts" title=${text}>${text}</p>`;
}

function factsText(agent) {
  const { requests, input_tokens: input, output_tokens: output, cost } = agent.usage;
  const spent = cost === null ? "cost not known" : `$${cost.toFixed(4)}`;
  const waiting = agent.queue.waiting > 0 ? `queue ${agent.queue.waiting} of ${agent.queue.capacity}` : "";
  const turn = agent.state === "idle" ? "" : `answer ${agent.iteration} of this turn`;
  const tokens = `${input.toLocaleString()} tokens in, ${output.toLocaleString()} out`;
  return [`Model ${agent.model}`, turn, waiting, counted(requests, "request"), tokens, spent,
    `without a console: ${agent.on_console_loss}`].filter(Boolean).join(" · ");
}
