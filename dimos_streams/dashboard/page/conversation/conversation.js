/** The panel of conversations: one for each agent, with its controls, approvals and missions. */

import { useState } from "preact/hooks";
import { html } from "../html.js";
import { AgentState, Badges } from "./agent.js";
import { Controls } from "./controls.js";
import { newestWords } from "./doing.js";
import { Facts } from "./facts.js";
import { Log } from "./log.js";
import { Plan } from "./plan.js";
import { Say } from "./say.js";
import { Ago, Empty, Panel } from "../parts.js";

const NOTHING = [];

/** @param {import("../session.js").Context} context */
export function ConversationPanel(context) {
  const [chosen, choose] = useState("");
  const agents = context.session.agents();
  const shown = agents.find(({ name }) => name === chosen) ?? agents[0];
  const tools = shown?.agent && !context.readOnly && html`<${Controls} ...${shown} ...${context} />`;
  return html`<${Panel} title="Conversation" area="conversation" tools=${tools}>
    ${agents.length > 1 && html`<${Agents} agents=${agents} shown=${shown.name} choose=${choose} ...${context} />`}
    ${shown ? html`<${Agent} key=${shown.name} ...${shown} isOneOfSeveral=${agents.length > 1} ...${context} />` : html`<${Empty}>This run has no agent: nobody is there to talk to.<//>`}
  <//>`;
}

/** A line for each agent: an operator who talks to one sees what the others do and say. */
function Agents({ agents, shown, choose, run, now }) {
  return html`<div class="agents" role="group" aria-label="Agents">${agents.map(({ name, agent }) => {
    const newest = newestWords(run.talks.get(name) ?? NOTHING, name);
    return html`<button key=${name} type="button" aria-pressed=${String(name === shown)} onClick=${() => choose(name)}>
      <b>${name}</b>${agent && html`<${Badges} agent=${agent} now=${now} />`}${newest?.utime > 0 && html`<${Ago} utime=${newest.utime} now=${now} />`}
      <span class="words">${newest?.text}</span></button>`;
  })}</div>`;
}

function Agent({ name, agent, ...context }) {
  if (!agent) return html`<${Empty}>${name} does not report: its process starts or has ended.<//>`;
  return html`<div class="agent">
    <${AgentState} agent=${agent} ...${context} />
    ${agent.plan && html`<${Plan} plan=${agent.plan} />`}
    <${Log} name=${name} agent=${agent} ...${context} />
    ${!context.readOnly && html`<${Say} name=${name} agent=${agent} ...${context} />`}
    <${Facts} agent=${agent} />
  </div>`;
}
