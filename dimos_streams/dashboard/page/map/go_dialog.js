/** The dialog that asks before a robot is sent anywhere. */

import { useState } from "preact/hooks";
import { html } from "../html.js";
import { Dialog } from "../dialog.js";
import { skillTitle } from "../format.js";
import { inMap } from "./floor.js";
import { metresText, placed, seenFrom } from "./geometry.js";
import { cautions, holderOf, wayTo, words } from "./go_to.js";
import { sceneOf } from "./scene.js";
import { send } from "./send.js";

/** @param {{map: import("./floor.js").SharedMap, point: import("./geometry.js").Point}} given a point in the map's frame */
export function GoDialog({ session, map, point, close }) {
  const [chosen, choose] = useState(map.robots.some(({ name }) => name === session.robot) ? session.robot : map.robots[0]?.name);
  const robot = map.robots.find(({ name }) => name === chosen);
  return html`<${Dialog} title="Go here?" kind="go" close=${close}>
    ${map.robots.length > 1 && html`<div class="choices" role="group" aria-label="Which robot">${map.robots.map(({ name }) =>
      html`<button key=${name} type="button" aria-pressed=${name === chosen} onClick=${() => choose(name)}>${name || "the robot"}</button>`)}</div>`}
    ${robot && html`<${Question} session=${session} robot=${robot} point=${point} close=${close} />`}
  <//>`;
}

function Question({ session, robot, point, close }) {
  const { state } = session;
  const stands = inMap(robot);
  const goal = seenFrom(stands, point);
  const zones = inMap(robot, sceneOf(state, robot.name).frame_id);
  const way = wayTo(state, robot.name);
  const at = robot.pose;
  const inZones = (place) => (zones ? seenFrom(zones, place) : seenFrom(stands, place));
  const places = { goal, point: inZones(point), from: at && inZones(placed(stands, at)) };
  const metres = at && Math.hypot(goal.x - at.x, goal.y - at.y);
  const busy = holderOf(state, robot.name);
  const go = () => {
    close();
    send(session, robot.name, way, goal);
  };
  const whose = `${robot.frame}${robot.name ? ` of ${robot.name}` : ""}`;
  return html`
    <p><b>x ${metresText(goal.x)} m, y ${metresText(goal.y)} m</b> in ${whose}${metres !== null && `, ${metres.toFixed(1)} m from the robot`}.</p>
    ${way.why && html`<p class="caution">${way.why}</p>`}
    ${!way.why && html`<p class="how">${way.agent
      ? html`The agent is told “${words(goal)}”, and may refuse it or ask for your approval.` : html`<code>${way.skill}</code> is called for you.`}</p>`}
    ${!way.why && cautions(state, robot, places, way).map(({ text, isBad }) => html`<p key=${text} class=${isBad ? "caution" : "hint"}>${text}</p>`)}
    <div class="choices">
      ${!way.why && html`<button type="button" class="primary" disabled=${!session.connected} onClick=${go}>${busy ? `End “${skillTitle(busy.skill, robot.name)}” and go here` : "Go here"}</button>`}
      <button type="button" onClick=${close}>${way.why ? "Close" : "Cancel"}</button>
    </div>`;
}
