/** The time axis: the span in view and its marks. Times are in µs since the Unix epoch. */

import { dateOf } from "../format.js";

export const SECOND = 1e6;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NARROWEST = 0.2 * SECOND;
const WIDEST = 14 * DAY;
/** The fraction of a view after now: the room for the names of calls that have just begun. */
const AHEAD = 0.16;
const STEPS = [
  1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY,
];

/** @typedef {{from: number, to: number}} View */

/** Return the view of a given length with `now` near its right edge. @returns {View} */
export function viewAt(now, span) {
  const to = now + span * AHEAD;
  return { from: to - span, to };
}

/** @param {View} view */
export function spanOf({ from, to }) {
  return to - from;
}

/** @param {View} view @param {number} width pixels @returns {number} pixels from the left */
export function xOf(view, width, utime) {
  return ((utime - view.from) / spanOf(view)) * width;
}

/** @param {View} view @param {number} width @param {number} x pixels */
export function timeAt(view, width, x) {
  return view.from + (x / width) * spanOf(view);
}

/** Zoom a view around a time that stays in place; a `factor` below 1 shows less. @param {View} view @returns {View} */
export function zoomed(view, factor, at) {
  const span = Math.min(WIDEST, Math.max(NARROWEST, spanOf(view) * factor));
  const share = (at - view.from) / spanOf(view);
  return { from: at - share * span, to: at + (1 - share) * span };
}

/** Move a view by a fraction of its length, without leaving the bounds.
 * @param {View} view @param {{first: number, last: number}} bounds */
export function panned(view, share, { first, last }) {
  const span = spanOf(view);
  const least = Math.min(first - span / 2, last - span);
  const most = Math.max(last - span * (1 - AHEAD), least);
  const from = Math.min(Math.max(view.from + share * span, least), most);
  return { from, to: from + span };
}

/** Return marks at round times of day, at least `apart` pixels from each other.
 * @param {View} view @param {number} width @returns {{utime: number, text: string}[]} */
export function marks(view, width, apart = 90) {
  const least = (spanOf(view) * apart) / Math.max(1, width);
  const step = STEPS.find((each) => each >= least) ?? Math.ceil(least / DAY) * DAY;
  const zone = -dateOf(view.from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((view.from + zone) / step) * step - zone;
  // By their count: far from now, a step may be less than the precision of numbers.
  const count = Math.max(0, Math.min(Math.floor((view.to - first) / step), Math.ceil(width / apart)) + 1) || 0;
  return Array.from({ length: count }, (_, place) => first + place * step).map((utime) => ({ utime, text: markText(utime, step) }));
}

function markText(utime, step) {
  const date = dateOf(Math.round(utime));
  const two = (value) => String(value).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= DAY || (step >= HOUR && clock === "00:00")) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  if (step >= MINUTE) return clock;
  const seconds = `${clock}:${two(date.getSeconds())}`;
  return step >= SECOND ? seconds : `${seconds}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Return a duration as a short text. @param {number} span µs */
export function tookText(span) {
  const seconds = Math.max(0, span) / SECOND;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60];
  if (minutes < 60) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
