/** All that is known of the floor, as maps that robots share. No DOM. */

import { namespaceOf } from "../format.js";
import { composed, isPlace } from "./geometry.js";
import { RobotOnMap } from "./robot.js";

const MAX_ROBOTS = 32;
/** Time without odometry, in µs, after which a robot's pose is taken from the monitor. */
const SILENT_US = 1_500_000;
/** Maximum step back in time, in µs; after a larger one, all robots are forgotten. */
const BACK_US = 2_000_000;
/** Matches the names of frames that are each robot's own, as they begin where it was switched on. */
const OWN = /(^|[/_])(odom|base_link|base_footprint)$/;

/**
 * A map of robots whose poses are in one frame.
 * @typedef {{key: string, frame: string, robots: RobotOnMap[]}} SharedMap
 */

export class Floor {
  /** @type {Map<string, RobotOnMap>} by namespace */
  robots = new Map();
  #utime = 0;

  /** @param {object} header of a frame of `WS /live` @param {ArrayBuffer|null} payload */
  take(header, payload) {
    if (header.utime < this.#utime - BACK_US) this.robots.clear(); // a recording was set back
    this.#utime = header.utime;
    const robot = this.#robot(header.robot);
    if (robot === null) return;
    if (header.type === "geometry_msgs.PoseStamped") robot.odometry(header);
    else if (header.kind === "odometry") robot.odometry(header);
    else if (header.kind === "scan") robot.scan(header, new Float32Array(payload));
    else if (header.kind === "detections") robot.detections(header);
    else if (header.kind === "frames") robot.frames.add(header.message);
    else if (header.kind === "grid") robot.grid(header, new Int8Array(payload));
    else if (header.kind === "path") robot.path(header);
  }

  /** Take the monitor's poses, for robots that send no odometry. @param {object} state @param {number} now */
  show(state, trails, now) {
    for (const [name, { x, y, yaw, frame_id: frame }] of Object.entries(state.robots)) {
      const robot = !isPlace({ x, y }) || yaw === null ? null : this.#robot(name);
      if (robot === null) continue;
      if (robot.pose === null && trails.has(name)) robot.trail = [...trails.get(name)];
      if (now - robot.utime > SILENT_US) robot.goTo({ x, y, yaw }, frame, now);
    }
    for (const name of this.robots.keys()) {
      if (!(name in state.robots) && !state.modules.some((module) => namespaceOf(module.name) === name)) this.robots.delete(name);
    }
  }

  /** The maps, one for each frame, those with most robots first. @returns {SharedMap[]} */
  get maps() {
    const maps = new Map();
    for (const robot of [...this.robots.values()].sort((one, other) => one.name.localeCompare(other.name))) {
      if (robot.pose === null) continue;
      const { root } = robot.frames.rootOf(robot.frame);
      const key = OWN.test(root) || root === "" ? `${robot.name} ${root}` : root;
      if (!maps.has(key)) maps.set(key, { key, frame: root, robots: [] });
      maps.get(key).robots.push(robot);
    }
    return [...maps.values()].sort((one, other) => other.robots.length - one.robots.length);
  }

  #robot(name) {
    if (!this.robots.has(name)) {
      if (this.robots.size >= MAX_ROBOTS) return null;
      this.robots.set(name, new RobotOnMap(name));
    }
    return this.robots.get(name);
  }
}

/** Return the pose of a frame, by default that of the odometry, in a robot's map; null if it is not known. */
export function inMap(robot, frame = "") {
  const { pose: odometry } = robot.frames.rootOf(robot.frame);
  const stands = robot.frameInOdometry(frame);
  return stands && composed(odometry, stands);
}
