/** Sends a robot to a point. */

import { metresText } from "./geometry.js";
import { holderOf, words } from "./go_to.js";

const LOOK_MS = 100;
/** Time for the earlier call to end, in ms; then the robot is sent anyway, and the answer says what is in its way. */
const WAIT_MS = 5_000;

/**
 * Send a robot, after ending what holds its base. The result is in the notices and in the conversation.
 * @param {import("./go_to.js").Way} way @param {import("./geometry.js").Point} goal in the frame of its odometry
 */
export async function send(session, robot, way, goal) {
  const busy = holderOf(session.state, robot);
  if (busy) {
    const reason = `the operator wants it to ${words(goal)}`;
    await session.ask({ command: "cancel", call_id: busy.call_id, reason });
    await until(() => holderOf(session.state, robot)?.call_id !== busy.call_id);
  }
  if (way.agent) return session.ask({ command: "say", agent: way.agent, text: words(goal) });
  const [x, y] = [goal.x, goal.y].map((value) => Number(metresText(value)));
  return session.order("calls", { skill: way.skill, arguments: { x, y }, caller: "operator" });
}

async function until(holds) {
  for (const began = performance.now(); !holds() && performance.now() - began < WAIT_MS;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
