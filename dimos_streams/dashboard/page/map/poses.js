/** Where a robot was, and when. Free of the DOM. */

import { between } from "./geometry.js";

const KEPT = 200;
/** A scan that is so much newer than the newest pose is taken from there: µs. */
const AHEAD_US = 500_000;
/** One that is so much older than the oldest pose too: of a moment of a recording there is but the newest of either. µs. */
const BEHIND_US = 250_000;

/** The newest poses of a robot. */
export class Poses {
  /** @type {{stamp: number, pose: import("./geometry.js").Pose}[]} oldest first */
  #kept = [];

  /** @param {number} stamp µs, of the robot's clock @param {import("./geometry.js").Pose} pose */
  add(stamp, pose) {
    const last = this.#kept.at(-1);
    if (last && stamp < last.stamp) this.#kept = []; // a clock that was set, or a recording that was put back
    this.#kept.push({ stamp, pose });
    if (this.#kept.length > KEPT) this.#kept.splice(0, this.#kept.length - KEPT);
  }

  get newest() {
    return this.#kept.at(-1)?.pose ?? null;
  }

  /** Whether the newest pose is not older than a stamp. */
  covers(stamp) {
    return this.#kept.length > 0 && this.#kept.at(-1).stamp >= stamp;
  }

  /**
   * The pose at an instant.
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
