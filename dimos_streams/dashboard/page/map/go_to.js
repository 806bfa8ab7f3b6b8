/** The way to send a robot to a point, and what should be known before. No DOM. */

import { bareSkill, isIn, namespaceOf, skillTitle } from "../format.js";
import { crosses, inside, metresText } from "./geometry.js";
import { sceneOf } from "./scene.js";
import { agentsOf } from "../snapshot.js";
import { clipped } from "../texts.js";

const SKILL = "go_to";
const SOMETHING = 20;

/**
 * The way to send a robot to a point.
 * @typedef {{skill: string, agent: string|null, why: string}} Way
 * `agent` is the agent that is told, so that the call passes its gates; if the robot has none, it is null, and the
 * skill is called for the operator. `why` is the reason why the robot can't be sent, empty if it can.
 */

/** @returns {Way} */
export function wayTo(state, robot) {
  const whose = robot || "This robot";
  const skill = state.skills.find((each) => namespaceOf(each.module) === robot && bareSkill(each.name, robot) === SKILL);
  if (!skill) return { skill: "", agent: null, why: `${whose} has no skill ${SKILL}: none of its modules drives it to a point.` };
  if (!skill.available) return { skill: skill.name, agent: null, why: `${skill.module}, which has the skill ${skill.name}, does not run.` };
  const agents = agentsOf(state).filter(({ name }) => namespaceOf(name) === robot);
  const whys = agents.map(({ name, agent }) => whyNot(state, name, agent, robot, skill.name));
  const able = agents[whys.indexOf("")];
  return { skill: skill.name, agent: able?.name ?? null, why: able ? "" : whys[0] ?? "" };
}

/** Return why an agent can't be told, empty if it can. It is never bypassed: a call without it would pass no gates. */
function whyNot(state, name, agent, robot, skill) {
  if (!agent || agent.state === "closed" || !state.skills.some((each) => each.agent && each.module === name && each.available)) {
    return `The agent ${name} does not answer, and nobody else checks what it would be told.`;
  }
  const isForbidden = [...agent.disabled_skills, ...agent.withheld_skills].some((each) => bareSkill(each, robot) === SKILL);
  return isForbidden ? `The agent ${name} may not use ${skill}: enable it among the skills.` : "";
}

/** Return the words for the agent. @param {import("./geometry.js").Point} point in the frame of the odometry */
export function words({ x, y }) {
  return `go to (${metresText(x)}, ${metresText(y)})`;
}

/**
 * Return what speaks against a point, or should be known of it.
 * @param {object} state @param {import("./robot.js").RobotOnMap} robot
 * @param {{goal: import("./geometry.js").Point, point: import("./geometry.js").Point,
 *   from: import("./geometry.js").Point|null}} places where to, in the frame of its odometry and in that of its zones, and
 *   where it is, in that of its zones
 * @param {Way} way
 * @returns {{text: string, isBad: boolean}[]}
 */
export function cautions(state, robot, { goal, point, from }, way) {
  const found = [];
  const say = (text, isBad = false) => found.push({ text, isBad });
  const zone = sceneOf(state, robot.name).zones.filter(({ restricted }) => restricted).find(({ polygon }) =>
    inside(polygon, point) || (from && crosses(polygon, from, point)));
  if (zone) {
    const how = inside(zone.polygon, point) ? "It lies in" : "The straight way there leads through";
    say(`${how} the restricted zone “${zone.name}”. ${way.agent
      ? "The agent asks for an approved plan before." : "No agent checks what you call yourself."}`, true);
  }
  const sure = robot.occupancy.at(goal);
  if (sure > SOMETHING) say("Something stands there, as the scans show it.", true);
  else if (sure === 0) say("No scan has shown yet what is there.");
  if (isStopped(state, robot.name)) {
    say("The robot is stopped, and stands until it is released.", true);
  }
  const agent = way.agent && state.agents[way.agent];
  if (agent?.mode === "paused") say("The agent is paused: it begins nothing until it may go on.", true);
  const busy = holderOf(state, robot.name);
  if (busy) say(`${skillTitle(busy.skill, robot.name)} drives the robot, and is ended before: ${clipped(busy.text, 120)}`);
  return found;
}

/** Return whether an operator has stopped a robot; the innermost order or release counts. */
export function isStopped(state, robot) {
  const { stops = [], released = [] } = state?.stopped ?? {};
  const innermost = (names) => Math.max(-1, ...names.filter((name) => isIn(robot, name)).map((name) => name.length));
  return innermost(stops.map((stop) => stop.robot)) > innermost(released);
}

/** Return the call that holds the robot's base, null if none does. */
export function holderOf(state, robot) {
  const id = state.leases[robot ? `${robot}/base` : "base"];
  return id === undefined ? null : state.calls.find((call) => call.call_id === id) ?? null;
}
