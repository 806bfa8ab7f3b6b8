/** The places of the timeline's parts on the canvas. */

import { xOf } from "./scale.js";

export const AXIS = 22;
export const ROW = 24;
export const LANE = 18;
const MIN_WIDTH = 4;
const MAX_LANES = 4;

/**
 * @typedef {{layout: import("./layout.js").Layout, view: import("./scale.js").View, width: number, height: number,
 *   scroll: number, now: number, until: number, selected: string|null, cursor: string|null, hovered: string|null,
 *   breaks: import("./calls.js").Break[], bands: import("./layout.js").Band[], knownFrom: number, before: string, colour: (name: string) => string}} Scene
 * Lengths are in CSS pixels. In a recording, what is later than `until` has not happened yet; `before` is the text for
 * the time before `knownFrom`.
 */

/** Return the places of the rows and the lanes. @param {Scene} scene */
export function places({ layout, height }) {
  const lanes = Math.min(layout.lanes.length, MAX_LANES);
  const lanesTop = height - lanes * LANE;
  return { top: AXIS, bottom: lanesTop, lanesTop, lanes };
}

/** Return the horizontal place of a bar and the part of it in view; null if none is. @param {Scene} scene */
export function extent(scene, from, to) {
  const { view, width, now } = scene;
  const x = xOf(view, width, from);
  const end = Math.max(xOf(view, width, Math.min(to, Math.max(now, from))), x + MIN_WIDTH);
  if (end < 0 || x > width) return null;
  return { x, end, left: Math.max(x, 0), right: Math.min(end, width) };
}
