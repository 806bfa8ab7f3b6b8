/** What was said and done: one conversation for each agent, with its controls, approvals and missions. */

import { useState } from "preact/hooks";
import { html } from "htm/preact";
import { AgentState } from "./agent.js";
import { Approval } from "./approval.js";
import { Log } from "./log.js";
import { Plan } from "./plan.js";
import { Say } from "./say.js";
import { Badge, Empty, Panel } from "../parts.js";

/** @param {import("../session.js").Context} context */
export function ConversationPanel(context) {
  const [chosen, choose] = useState("");
  const agents = context.session.agents();
  const shown = agents.find(({ name }) => name === chosen) ?? agents[0];
  const tools = agents.length > 1 && html`<div role="tablist" aria-label="Agents">${agents.map(({ name, agent }) => html`<button
    key=${name} type="button" role="tab" aria-selected=${String(name === shown.name)} onClick=${() => choose(name)}>${name}
    ${agent?.approvals.length > 0 && html`<${Badge} kind="paused">${agent.approvals.length}<//>`}</button>`)}</div>`;
  return html`<${Panel} title="Conversation" area="conversation" tools=${tools}>
    ${shown ? html`<${Agent} key=${shown.name} ...${shown} ...${context} />` : html`<${Empty}>This run has no agent.<//>`}
  <//>`;
}

function Agent({ name, agent, ...context }) {
  if (!agent) return html`<${Empty}>${name} does not report: its process starts or has ended.<//>`;
  return html`<div class="agent">
    <${AgentState} name=${name} agent=${agent} ...${context} />
    <${Log} name=${name} agent=${agent} draft=${context.run.drafts.get(name)} ...${context} />
    ${agent.plan && html`<${Plan} plan=${agent.plan} />`}
    ${agent.approvals.map((approval) => html`<${Approval} key=${approval.id} name=${name} approval=${approval} ...${context} />`)}
    ${!context.readOnly && html`<${Say} name=${name} agent=${agent} ...${context} />`}
  </div>`;
}
