/** The people on a map, each of them once. No DOM. */

import { inMap } from "./floor.js";
import { placed } from "./geometry.js";
import { canBeSame } from "./robot.js";

const OLD_US = 60e6;

/**
 * A person on the map, as known to the robot that follows them or that saw them last.
 * @typedef {{person: object, x: number, y: number, utime: number, robot: string, isFollowed: boolean}} Shown in metres of the map
 */

/**
 * @param {{robot: import("./robot.js").RobotOnMap, followed: Set<string>}[]} robots that share the map @param {number} now µs
 * @returns {Shown[]} who is followed first, then whoever was seen last
 */
export function peopleOn(robots, now) {
  const all = robots.flatMap(({ robot, followed }) => {
    const stands = inMap(robot);
    return [...robot.people.values()].filter(({ utime }) => now - utime < OLD_US).map((person) => ({
      person, ...placed(stands, person), utime: person.utime, robot: robot.name, isFollowed: followed.has(person.track),
    }));
  });
  all.sort((one, other) => other.isFollowed - one.isFollowed || other.utime - one.utime);
  return all.filter((each, place) => !all.slice(0, place).some((other) => isSame(each, other)));
}

/** Return whether two robots see one person: labels are equal, and the person can have walked from place to place. */
function isSame(one, other) {
  return one.robot !== other.robot && one.person.label === other.person.label && canBeSame(one, other);
}
