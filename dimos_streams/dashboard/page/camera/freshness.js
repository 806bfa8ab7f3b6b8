/** The freshness of a camera's pictures, and the texts about it. No DOM. */

import { spanText } from "../format.js";

const STALE_S = 2;

/**
 * @param {import("./camera_feed.js").CameraFeed & {seen: number|null}} feed `seen` is when somebody was detected last, µs
 * @param {number} now µs @param {string} [error] why the bridge can't show the topic
 * @returns {{problem: string, blind: string, rate: string, isStale: boolean}} `problem` is why there is no new picture,
 *   `blind` why there are no boxes; empty where all is well
 */
export function freshness({ header, fresh, times, failure, seen }, now, error) {
  const age = header ? (now - fresh) / 1e6 : Infinity;
  const isStale = age > STALE_S;
  const unseen = seen === null ? 0 : (now - seen) / 1e6;
  const stands = header && (now - header.utime) / 1e6 < STALE_S;
  const none = header ? `No ${stands ? "new " : ""}picture for ${spanText(age)}` : "No picture yet";
  return {
    problem: failure || (isStale ? error || none : ""),
    blind: !isStale && unseen > STALE_S ? `No detections for ${spanText(unseen)}` : "",
    rate: isStale || times.length < 2 ? "" : `${rateOf(times)} Hz`,
    isStale: isStale && header !== null,
  };
}

function rateOf(times) {
  const rate = (1000 * (times.length - 1)) / (times.at(-1) - times[0]);
  return rate < 9.95 ? rate.toFixed(1) : rate.toFixed(0);
}
