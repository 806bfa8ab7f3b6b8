/** The transforms between a robot's frames, as its `tf` has them, seen from above. No DOM. */

import { composed, inverse, ORIGIN, planar } from "./geometry.js";

const MAX_FRAMES = 200;
const DEEPEST = 32;
/** Minimum cosine of a frame's tilt: a frame that is tilted more has no pose in the plane. */
const UPRIGHT = 0.95;

export class Frames {
  /** @type {Map<string, {parent: string, pose: import("./geometry.js").Pose}>} by child */
  #parents = new Map();

  /** @param {object} message a `tf2_msgs.TFMessage` */
  add(message) {
    for (const { header, child_frame_id: child, transform } of message.transforms) {
      const { x, y } = transform.rotation;
      const pose = planar(transform.translation, transform.rotation);
      if (pose === null || 1 - 2 * (x * x + y * y) < UPRIGHT) continue;
      if (!this.#parents.has(child) && this.#parents.size >= MAX_FRAMES) continue;
      this.#parents.set(child, { parent: header.frame_id, pose });
    }
  }

  /** Return the last of a frame's parents, and the frame's pose in it.
   * @returns {{root: string, pose: import("./geometry.js").Pose}} */
  rootOf(frame) {
    let [root, pose] = [frame, ORIGIN];
    for (let depth = 0; depth < DEEPEST; depth += 1) {
      const step = this.#parents.get(root);
      if (!step) break;
      [root, pose] = [step.parent, composed(step.pose, pose)];
    }
    return { root, pose };
  }

  /** Return the pose of `frame` in `other`, null if nothing connects them. */
  within(frame, other) {
    if (frame === other) return ORIGIN;
    const [one, two] = [this.rootOf(frame), this.rootOf(other)];
    return one.root === two.root ? composed(inverse(two.pose), one.pose) : null;
  }
}
