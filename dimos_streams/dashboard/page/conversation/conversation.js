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
import { Empty, Panel } from "../parts.js";
import { Ago } from "../times.js";

const NOTHING = [];

export function ConversationPanel({ session }) {
  const [chosen, choose] = useState("");
  const agents = session.agents();
  const shown = agents.find(({ name }) => name === chosen) ?? agents[0];
  const tools = shown?.agent && !session.readOnly && html`<${Controls} ...${shown} session=${session} />`;
  return html`<${Panel} title="Conversation" area="conversation" tools=${tools}>
    ${agents.length > 1 && html`<${Agents} agents=${agents} shown=${shown.name} choose=${choose} session=${session} />`}
    ${shown ? html`<${Agent} key=${shown.name} ...${shown} isOneOfSeveral=${agents.length > 1} session=${session} />` : html`<${Empty}>This run has no agent: nobody is there to talk to.<//>`}
  <//>`;
}

/** A line for each agent: an operator who talks to one sees what the others do and say. */
function Agents({ agents, shown, choose, session: { run, now } }) {
  return html`<div class="agents" role="group" aria-label="Agents">${agents.map(({ name, agent }) => {
    const newest = newestWords(run.talks.get(name) ?? NOTHING, name);
    return html`<button key=${name} type="button" aria-pressed=${String(name === shown)} onClick=${() => choose(name)}>
      <b>${name}</b>${agent && html`<${Badges} agent=${agent} now=${now} />`}${newest?.utime > 0 && html`<${Ago} utime=${newest.utime} now=${now} />`}
      <span class="words">${newest?.text}</span></button>`;
  })}</div>`;
}

function Agent({ name, agent, isOneOfSeveral, session }) {
  if (!agent) return html`<${Empty}>${name} does not report: its process starts or has ended.<//>`;
  return html`<div class="agent">
    <${AgentState} agent=${agent} session=${session} />
    ${agent.plan && html`<${Plan} plan=${agent.plan} />`}
    <${Log} name=${name} agent=${agent} session=${session} />
    ${!session.readOnly && html`<${Say} name=${name} agent=${agent} isOneOfSeveral=${isOneOfSeveral} session=${session} />`}
    <${Facts} agent=${agent} />
  </div>`;
}
