/** The poses of a robot over time. No DOM. */

import { between } from "./geometry.js";

const KEPT = 200;
/** Maximum time, in µs, by which a scan may be newer than the newest pose, which is then used for it. */
const AHEAD_US = 500_000;
/** Maximum time, in µs, by which a scan may be older than the oldest pose: a recording's jump brings one of each. */
const BEHIND_US = 250_000;

/** The newest poses of a robot. */
export class Poses {
  /** @type {{stamp: number, pose: import("./geometry.js").Pose}[]} oldest first */
  #kept = [];

  /** @param {number} stamp µs, of the robot's clock @param {import("./geometry.js").Pose} pose */
  add(stamp, pose) {
    const last = this.#kept.at(-1);
    if (last && stamp < last.stamp) this.#kept = []; // the clock was set, or a recording was set back
    this.#kept.push({ stamp, pose });
    if (this.#kept.length > KEPT) this.#kept.splice(0, this.#kept.length - KEPT);
  }

  get newest() {
    return this.#kept.at(-1)?.pose ?? null;
  }

  /** Return whether there is a pose at a stamp or later. */
  covers(stamp) {
    return this.#kept.length > 0 && this.#kept.at(-1).stamp >= stamp;
  }

  /**
   * Return the pose at an instant.
   * @returns {import("./geometry.js").Pose|null} null where it is not known: long before the oldest, or after the newest
   */
  at(stamp) {
    if (stamp === null || this.#kept.length === 0) return this.newest;
    const last = this.#kept.at(-1);
    if (stamp >= last.stamp) return stamp - last.stamp <= AHEAD_US ? last.pose : null;
    const [first] = this.#kept;
    if (stamp < first.stamp) return first.stamp - stamp <= BEHIND_US ? first.pose : null;
    const after = this.#kept.findIndex((each) => each.stamp > stamp);
    const [one, other] = [this.#kept[after - 1], this.#kept[after]];
    return between(one.pose, other.pose, (stamp - one.stamp) / (other.stamp - one.stamp));
  }
}
