/** The places of the timeline's parts on the canvas, and what is at a point of it. */

import { timeAt, xOf } from "./scale.js";

export const AXIS = 22;
export const ROW = 24;
export const LANE = 18;
const MIN_WIDTH = 4;
const MAX_LANES = 4;
/** The distance, in pixels, within which a point counts as on a mark: some are small. */
export const NEAR_PX = 5;

/**
 * @typedef {{layout: import("./layout.js").Layout, view: import("./scale.js").View, width: number, height: number,
 *   scroll: number, now: number, until: number, selected: string|null, cursor: string|null, hovered: string|null,
 *   breaks: import("./calls.js").Break[], bands: import("./layout.js").Band[], knownFrom: number, before: string, colour: (name: string) => string}} Scene
 * Lengths are in CSS pixels. In a recording, what is later than `until` has not happened yet; `before` is the text for
 * the time before `knownFrom`.
 */

/** Return the places of the rows and the lanes. */
export function places({ layout, height }) {
  const lanes = Math.min(layout.lanes.length, MAX_LANES);
  const lanesTop = height - lanes * LANE;
  return { top: AXIS, bottom: lanesTop, lanesTop, lanes };
}

/** Return the horizontal place of a bar and the part of it in view; null if none is. */
export function extent(scene, from, to) {
  const { view, width, now } = scene;
  const x = xOf(view, width, from);
  const end = Math.max(xOf(view, width, Math.min(to, Math.max(now, from))), x + MIN_WIDTH);
  if (end < 0 || x > width) return null;
  return { x, end, left: Math.max(x, 0), right: Math.min(end, width) };
}

/** Return the call at a point, or one near it. */
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

/** Return how far the rows in view can be scrolled up, in pixels. */
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
