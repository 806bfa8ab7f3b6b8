/** The agents and robots in a snapshot of the monitor, which is `state` on this page; `robot` is a namespace, empty for all. */

import { namespaceOf } from "./format.js";

/** Return the agents by name, with null for one that offers its skills but has not reported (yet). */
export function agentsOf(state) {
  const offering = state.skills.filter((skill) => skill.agent);
  const names = new Set([...Object.keys(state.agents), ...offering.map((skill) => skill.module)]);
  return [...names].sort().map((name) => ({ name, agent: state.agents[name] ?? null }));
}

/** Return the namespaces of the robots that there are to choose from: none unless there are several. */
export function robotsOf(state) {
  const spaces = new Set([...agentsOf(state).map(({ name }) => namespaceOf(name)), ...Object.keys(state.robots)]);
  spaces.delete("");
  return spaces.size > 1 ? [...spaces].sort() : [];
}
