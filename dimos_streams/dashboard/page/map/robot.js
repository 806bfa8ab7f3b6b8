/** A robot and what it has seen, all in the frame of its odometry. No DOM. */

import { labelIn, placeOf } from "../camera/boxes.js";
import { Frames } from "./frames.js";
import { composed, isPlace, ORIGIN, placed, planar } from "./geometry.js";
import { Occupancy, raysOf } from "./occupancy.js";
import { Poses } from "./poses.js";

const MAX_TRAIL = 800;
const TRAIL_STEP_M = 0.04;
/** Maximum distance between two poses, in metres; after a larger one, the robot's map begins anew. */
const JUMP_M = 1;
const MAX_PEOPLE = 50;
const FORGET_US = 120e6;
/** The reach within which a track of equal label is the same person: a distance in metres, and a speed in m/s. */
const SAME_M = 1;
const WALK_MPS = 1.5;
const BASE = "base_link";

/** Return whether somebody who was seen at one place can have walked to another one.
 * @param {{x: number, y: number, utime: number}} one */
export function canBeSame(one, other) {
  const reach = SAME_M + (WALK_MPS * Math.abs(one.utime - other.utime)) / 1e6;
  return Math.hypot(one.x - other.x, one.y - other.y) < reach;
}

/**
 * A person who was seen.
 * @typedef {{track: string, label: string, x: number, y: number, utime: number, isSeen: boolean}} Person
 */

export class RobotOnMap {
  frames = new Frames();
  occupancy = new Occupancy();
  /** The frame of its odometry; empty before the first message. */
  frame = "";
  /** @type {import("./geometry.js").Pose|null} */
  pose = null;
  /** Time at which the pose came, in µs of the run's clock. */
  utime = 0;
  /** The speed by the odometry, in m/s; null if it says none. */
  speed = null;
  /** @type {import("./geometry.js").Point[]} oldest first */
  trail = [];
  /** The hits of the newest scan, in metres: x, y, x, y … */
  hits = new Float32Array(0);
  hitsUtime = 0;
  /** @type {Map<string, Person>} */
  people = new Map();
  /** Grids that modules have published, by topic. */
  grids = new Map();
  /** Paths that modules have published, by topic. */
  paths = new Map();
  #base = BASE;
  #poses = new Poses();
  #waiting = null;

  /** @param {string} name its namespace */
  constructor(name) {
    this.name = name;
  }

  /** Take the pose from a frame of kind `odometry`, or from a `PoseStamped`. */
  odometry(header) {
    const { message } = header;
    const given = message.pose.pose ?? message.pose;
    const pose = planar(given.position, given.orientation);
    if (pose === null) return;
    const twist = message.twist?.twist.linear;
    this.speed = twist ? Math.hypot(twist.x, twist.y) : null;
    this.#base = message.child_frame_id || BASE;
    this.goTo(pose, message.header.frame_id, header.utime);
    this.#poses.add(header.stamp ?? header.utime, pose);
    this.#settle(false);
  }

  /** Move the robot to a pose in a frame; after a jump, its map begins anew. */
  goTo(pose, frame, utime) {
    const isElsewhere = this.frame !== "" && frame !== this.frame;
    if (isElsewhere || (this.pose && Math.hypot(pose.x - this.pose.x, pose.y - this.pose.y) > JUMP_M)) this.#beginAnew();
    [this.pose, this.frame, this.utime] = [pose, frame, utime];
    const last = this.trail.at(-1);
    if (last && Math.hypot(pose.x - last.x, pose.y - last.y) < TRAIL_STEP_M) return;
    this.trail.push({ x: pose.x, y: pose.y });
    if (this.trail.length > MAX_TRAIL) this.trail.splice(0, this.trail.length - MAX_TRAIL);
  }

  /** Take a frame of kind `scan`. It is entered when the robot's pose at its time is known. */
  scan(header, ranges) {
    if (this.#waiting) this.#settle(true);
    this.#waiting = { header, ranges };
    this.#settle(false);
  }

  /** Take a frame of kind `detections`: the places of people, as far as the robot knows them. */
  detections(header) {
    for (const person of this.people.values()) person.isSeen = false;
    for (const { id, results } of header.message.detections) {
      const point = placeOf(results[0]?.pose?.pose?.position);
      const pose = point && this.#poseOf(header.message.header.frame_id, header.stamp);
      if (pose) this.#see({ ...placed(pose, point), track: id, label: labelIn(results[0].hypothesis), utime: header.utime });
    }
    for (const [key, person] of this.people) {
      if (header.utime - person.utime > FORGET_US || person.utime > header.utime) this.people.delete(key);
    }
  }

  /** Take a frame of kind `grid`. */
  grid(header, cells) {
    this.grids.set(header.topic, { ...header, cells });
  }

  /** Take a frame of kind `path`. */
  path(header) {
    const { header: { frame_id: frame }, poses } = header.message;
    const points = poses.map(({ pose }) => pose.position).filter(isPlace);
    this.paths.set(header.topic, { frame, points, utime: header.utime });
  }

  /** Return the pose of a frame in that of the odometry; null if it is not known. */
  frameInOdometry(frame) {
    return frame === "" || frame === this.frame ? ORIGIN : this.frames.within(frame, this.frame);
  }

  #settle(isLate) {
    if (!this.#waiting || (!isLate && !this.#isPosed(this.#waiting.header.stamp))) return;
    const { header, ranges } = this.#waiting;
    this.#waiting = null;
    const pose = this.#poseOf(header.frame_id, header.stamp);
    if (pose === null) return;
    this.occupancy.add(pose, header, ranges);
    const hits = raysOf(header, ranges).filter(({ isHit }) => isHit);
    this.hits = new Float32Array(hits.length * 2);
    for (const [index, { angle, length }] of hits.entries()) {
      this.hits[2 * index] = pose.x + length * Math.cos(pose.yaw + angle);
      this.hits[2 * index + 1] = pose.y + length * Math.sin(pose.yaw + angle);
    }
    this.hitsUtime = header.utime;
  }

  /** Return whether there is a pose at a stamp or later. */
  #isPosed(stamp) {
    return this.pose !== null && (stamp === null || this.#poses.covers(stamp));
  }

  /** Return the pose of one of the robot's frames at an instant, null if it is not known. */
  #poseOf(frame, stamp) {
    const fixed = frame === this.frame ? ORIGIN : null;
    if (fixed || this.pose === null) return fixed;
    const base = this.#poses.at(stamp) ?? (this.#poses.newest ? null : this.pose);
    const mount = frame === "" || frame === this.#base ? ORIGIN : this.frames.within(frame, this.#base);
    return base && mount && composed(base, mount);
  }

  #see(person) {
    const key = person.track || person.label;
    for (const [other, known] of this.people) {
      if (other === key || known.isSeen || known.label !== person.label) continue;
      if (canBeSame(known, person)) this.people.delete(other);
    }
    this.people.delete(key); // the person who was seen last is the last one
    this.people.set(key, { ...person, isSeen: true });
    if (this.people.size > MAX_PEOPLE) this.people.delete(this.people.keys().next().value);
  }

  #beginAnew() {
    this.occupancy = new Occupancy();
    this.trail = [];
    this.people.clear();
    this.hits = new Float32Array(0);
    this.#poses = new Poses();
    this.#waiting = null;
  }
}
