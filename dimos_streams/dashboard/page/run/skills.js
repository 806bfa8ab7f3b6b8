/** The skills that are offered, with a switch for each agent that may use them. */

import { html } from "../html.js";
import { namespaceOf } from "../format.js";
import { Badge, Empty, Panel } from "../parts.js";

export function SkillsPanel({ session }) {
  const skills = session.state.skills.filter((skill) => skill.audience === "everyone" && session.shows(skill.module));
  const reporting = session.agents().filter(({ agent }) => agent);
  const gone = reporting.flatMap(({ name, agent }) => agent.disabled_skills
    .filter((disabled) => !skills.some((skill) => skill.name === disabled))
    .map((disabled) => html`<li key=${`${name} ${disabled}`} class="off"><div class="about"><code>${disabled}</code><p class="quiet">Offered by nobody.</p></div>
      <div class="switches"><${Switch} name=${name} agent=${agent} skill=${disabled} session=${session} /></div></li>`));
  return html`<${Panel} title="Skills" area="skills" scrolls>
    ${skills.length + gone.length === 0 ? html`<${Empty}>No module offers a skill.<//>`
      : html`<ul class="rows">${skills.map((skill) => html`<${Skill} key=${skill.name} skill=${skill}
          agents=${reporting.filter(({ name }) => isNear(skill.module, name))} session=${session} />`)}${gone}</ul>`}
  <//>`;
}

/** Return whether an agent's model is offered a module's skills: the module is in its namespace, or in none. */
function isNear(module, agent) {
  const space = namespaceOf(agent);
  return !space || !module.includes("/") || module.startsWith(`${space}/`);
}

function Skill({ skill, agents, session }) {
  return html`<li class=${skill.available ? "" : "off"}>
    <div class="about"><code>${skill.name}</code>${!skill.available && html` <${Badge} kind="failed">not available<//>`}
      <p class="quiet" title=${skill.description}>${skill.description.split("\n", 1)[0]}</p></div>
    <div class="switches">${agents.map(({ name, agent }) => html`<${Switch} key=${name} name=${name} agent=${agent} skill=${skill.name}
      isOneOfSeveral=${agents.length > 1} session=${session} />`)}</div></li>`;
}

function Switch({ name, agent, skill, isOneOfSeveral = false, session: { connected, readOnly, ask } }) {
  const whose = isOneOfSeveral ? html`<span class="quiet">${name}</span>` : null;
  if (agent.withheld_skills.includes(skill)) {
    return html`<p class="quiet" title="The setting skills does not list it">${whose} not given</p>`;
  }
  const enabled = agent.disabled_skills.includes(skill);
  return html`<p>${whose}<button type="button" role="switch" aria-checked=${String(!enabled)} aria-label=${`${name} may use ${skill}`}
    title=${enabled ? "disabled: the model is not offered it" : "enabled: the model may use it"}
    disabled=${!connected || readOnly} onClick=${() => ask({ command: "set_skill", agent: name, skill, enabled })}><i></i></button></p>`;
}
