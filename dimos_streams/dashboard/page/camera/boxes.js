/** Detections, matched with the pictures that they were made in. No DOM. */

import { drawn } from "../texts.js";

const KEPT = 16;
/** Maximum time between a picture and the detections that are shown on it, in µs. */
const FARTHEST_US = 700_000;
/** Maximum time for which the last motion of a box is extrapolated, in µs. */
const AHEAD_US = 250_000;
/** Maximum time between the arrivals of a picture and of detections without stamps, in µs. */
const UNSTAMPED_US = 1_000_000;

/**
 * @typedef {{track: string, label: string, score: number, left: number, top: number, width: number, height: number,
 *   distance: number|null}} Box in pixels of the picture; `distance` in metres on the floor
 * @typedef {{stamp: number|null, utime: number, boxes: Box[]}} Seen
 */

/** @param {object} header of a frame of kind `detections` @returns {Seen} */
export function seenIn(header) {
  const boxes = header.message.detections.filter(({ results }) => results.length > 0).map(boxOf);
  return { stamp: header.stamp ?? null, utime: header.utime, boxes };
}

function boxOf({ id, bbox, results }) {
  const { center, size_x: width, size_y: height } = bbox;
  const [{ hypothesis, pose }] = results;
  const place = placeOf(pose?.pose?.position);
  return {
    track: id, label: labelIn(hypothesis), score: hypothesis.score,
    left: center.position.x - width / 2, top: center.position.y - height / 2, width, height,
    distance: place && Math.hypot(place.x, place.y),
  };
}

/** Return the label of a detection, of a length that can be drawn. */
export function labelIn({ class_id: label }) {
  return drawn(label);
}

/** Return a place, or null if it is not known: without depth, it is NaN (null in JSON) or zero. */
export function placeOf(position) {
  const { x, y, z } = position ?? {};
  if (!Number.isFinite(x) || !Number.isFinite(y) || (x === 0 && y === 0 && !z)) return null;
  return Math.hypot(x, y) < 1e4 ? { x, y } : null;
}

/** The newest detections of one detector. */
export class Sightings {
  /** @type {Seen[]} by their stamps, oldest first */
  #kept = [];

  /** @param {Seen} seen */
  add(seen) {
    const before = this.#kept.at(-1);
    // If stamps go back, the earlier ones are of another clock, or of a later moment of a recording.
    if (before && seen.stamp !== null && before.stamp !== null && seen.stamp < before.stamp) this.#kept = [];
    this.#kept = [...this.#kept.slice(1 - KEPT), seen];
  }

  get newest() {
    return this.#kept.at(-1) ?? null;
  }

  /**
   * Return the boxes that belong on a picture: those of its instant, else those nearest to it in time, each moved on to
   * where it would be by its last motion.
   * @param {number|null} stamp of the picture, µs
   * @param {number} utime when it came
   * @returns {Box[]}
   */
  at(stamp, utime) {
    const place = this.#nearest(stamp);
    if (place < 0) return this.newest && Math.abs(utime - this.newest.utime) < UNSTAMPED_US ? this.newest.boxes : [];
    const seen = this.#kept[place];
    const off = stamp - seen.stamp;
    if (off === 0) return seen.boxes;
    if (Math.abs(off) > FARTHEST_US) return [];
    const before = this.#kept[place - 1];
    const passed = before ? seen.stamp - before.stamp : 0;
    if (passed <= 0 || passed > FARTHEST_US) return seen.boxes;
    const share = Math.max(-AHEAD_US, Math.min(AHEAD_US, off)) / passed;
    return seen.boxes.map((box) => moved(box, before.boxes.find(({ track }) => track && track === box.track), share));
  }

  /** Return the index of the detections with the nearest stamp, -1 if stamps can't be compared. */
  #nearest(stamp) {
    let best = -1;
    if (stamp === null) return best;
    for (const [place, seen] of this.#kept.entries()) {
      if (seen.stamp === null) return -1;
      if (best < 0 || Math.abs(seen.stamp - stamp) <= Math.abs(this.#kept[best].stamp - stamp)) best = place;
    }
    return best;
  }
}

/** Return a box as it would be after `share` of the time between two sightings, by its motion between them. */
function moved(box, before, share) {
  if (!before) return box;
  const on = (name) => box[name] + (box[name] - before[name]) * share;
  return { ...box, left: on("left"), top: on("top"), width: Math.max(1, on("width")), height: Math.max(1, on("height")) };
}
