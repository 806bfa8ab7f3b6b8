/** A line of facts about an agent's model: its name, and what it has used. */

import { html } from "../html.js";
import { counted } from "../format.js";

export function Facts({ agent }) {
  return html`<p class="facts">${factsText(agent)}</p>`;
}

const UNWATCHED = { continue: "goes on when no page is open", hold: "pauses when no page is open", abort: "ends its missions when no page is open" };

function factsText(agent) {
  const { requests, input_tokens: input, output_tokens: output, cost } = agent.usage;
  const spent = cost === null ? "" : `$${cost.toFixed(4)}`;
  const model = agent.model === "offline" ? "No language model: a small grammar (offline)" : `Model ${agent.model}`;
  const waiting = agent.queue.waiting > 0 ? `queue ${agent.queue.waiting} of ${agent.queue.capacity}` : "";
  const turn = agent.state === "idle" ? "" : `answer ${agent.iteration} of this turn`;
  const tokens = input + output === 0 ? "" : `${input.toLocaleString()} tokens in, ${output.toLocaleString()} out`;
  return [model, turn, waiting, counted(requests, "request"), tokens, spent, UNWATCHED[agent.on_console_loss]].filter(Boolean).join(" · ");
}
