/** The calls of the timeline under a point of its canvas. Free of the DOM. */

import { extent, LANE, places, ROW } from "./places.js";
import { timeAt } from "./scale.js";

/** The distance, in pixels, within which a point counts as on a mark: some are small. */
export const NEAR_PX = 5;

/** Return the call at a point, or one near it. @param {import("./places.js").Scene} scene */
export function callAt(scene, x, y) {
  const { top, bottom, lanesTop } = places(scene);
  if (y >= lanesTop) return holderAt(scene, x, Math.floor((y - lanesTop) / LANE));
  if (y < top || y > bottom) return null;
  const row = Math.floor((y - top + scene.scroll) / ROW);
  const near = barsInView(scene)
    .filter(({ bar, part }) => bar.row === row && x >= part.x - NEAR_PX && x <= part.end + NEAR_PX)
    .map(({ bar, part }) => ({ call: bar.call, apart: Math.max(part.x - x, x - part.end, 0) }));
  return near.sort((one, other) => one.apart - other.apart)[0]?.call ?? null;
}

/** Return how far the rows in view can be scrolled up, in pixels. @param {import("./places.js").Scene} scene */
export function scrollableBy(scene) {
  const { top, bottom } = places(scene);
  const rows = barsInView(scene).reduce((most, { bar }) => Math.max(most, bar.row + 1), 0);
  return Math.max(0, rows * ROW - (bottom - top));
}

/** Return the call that holds a lane's resource at a point. */
function holderAt(scene, x, lane) {
  const holds = scene.layout.lanes[lane]?.holds ?? [];
  const at = timeAt(scene.view, scene.width, x);
  return holds.find(({ from, to }) => from <= at && at <= to)?.call ?? null;
}

function barsInView(scene) {
  return scene.layout.bars
    .map((bar) => ({ bar, part: extent(scene, bar.call.begin, bar.call.end ?? Infinity) }))
    .filter(({ part }) => part);
}
