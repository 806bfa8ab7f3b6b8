/** A map in words, for screen readers. No DOM. */

import { followedBy } from "../canvas/followed.js";
import { inMap } from "./floor.js";
import { composed, placed } from "./geometry.js";
import { isStopped } from "./go_to.js";
import { sceneOf } from "./scene.js";

const OLD_US = 60e6;

/** @param {import("./floor.js").SharedMap|null} map @param {object|null} state @param {number} now µs @returns {string[]} */
export function mapInWords(map, state, now) {
  if (map === null) return [];
  return map.robots.flatMap((robot) => wordsOf(robot, state, now));
}

function wordsOf(robot, state, now) {
  const stands = inMap(robot);
  const pose = composed(stands, robot.pose);
  const name = robot.name || "The robot";
  const said = [`${name} is at ${place(pose)}, heading ${Math.round((pose.yaw * 180) / Math.PI)}°.`];
  if (isStopped(state, robot.name)) said.push(`${name} is stopped.`);
  const followed = new Set(followedBy(state, robot.name).map(({ track }) => track));
  for (const person of robot.people.values()) {
    if (now - person.utime > OLD_US) continue;
    const who = `${person.label}${followed.has(person.track) ? ", who is followed," : ""}`;
    const age = Math.round((now - person.utime) / 1e6);
    said.push(`${who} ${person.isSeen ? "is" : `was seen ${age} s ago`} at ${place(placed(stands, person))}.`);
  }
  const scene = sceneOf(state, robot.name);
  const there = inMap(robot, scene.frame_id);
  if (!there) return said;
  for (const [index, point] of scene.waypoints.entries()) {
    said.push(`Way-point ${point.name ?? index + 1} is at ${place(placed(there, point))}.`);
  }
  for (const zone of scene.zones ?? []) said.push(`${zone.restricted ? "Restricted zone" : "Zone"} ${zone.name}.`);
  if (scene.goal) said.push(`${name} goes to ${place(placed(there, scene.goal))}.`);
  return said;
}

function place({ x, y }) {
  return `x ${x.toFixed(1)} m, y ${y.toFixed(1)} m`;
}
