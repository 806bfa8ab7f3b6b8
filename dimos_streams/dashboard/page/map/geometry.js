/** Poses, polygons and views of the floor: metres and radians, y to the left of x. No DOM. */

/** @typedef {{x: number, y: number, yaw: number}} Pose */
/** @typedef {{x: number, y: number}} Point */

/** Maximum coordinate, in metres: a larger one is an error or in another unit. National grids are within it. */
const FARTHEST_M = 1e8;

/** Minimum length of a quaternion that has a direction: shorter ones are what is left of zeros. */
const SHORTEST = 1e-3;

export const ORIGIN = Object.freeze({ x: 0, y: 0, yaw: 0 });

/** @param {number} angle @returns {number} the same direction, between -π and π */
export function wrapped(angle) {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}

/** Transform a point from a pose's frame into the frame that the pose is in. @param {Pose} pose @param {Point} point */
export function placed(pose, { x, y }) {
  const [cos, sin] = [Math.cos(pose.yaw), Math.sin(pose.yaw)];
  return { x: pose.x + cos * x - sin * y, y: pose.y + sin * x + cos * y };
}

/** The inverse of `placed`. @param {Pose} pose @param {Point} point */
export function seenFrom(pose, { x, y }) {
  const [cos, sin] = [Math.cos(pose.yaw), Math.sin(pose.yaw)];
  return { x: cos * (x - pose.x) + sin * (y - pose.y), y: cos * (y - pose.y) - sin * (x - pose.x) };
}

/** Transform the pose `inner` from the frame of `outer` into the frame that `outer` is in. */
export function composed(outer, inner) {
  return { ...placed(outer, inner), yaw: wrapped(outer.yaw + inner.yaw) };
}

/** @param {Pose} pose */
export function inverse(pose) {
  return { ...seenFrom(pose, ORIGIN), yaw: -pose.yaw };
}

/** Return a pose on the straight way from one to another. @param {number} share 0 to 1 */
export function between(one, other, share) {
  return {
    x: one.x + (other.x - one.x) * share,
    y: one.y + (other.y - one.y) * share,
    yaw: wrapped(one.yaw + wrapped(other.yaw - one.yaw) * share),
  };
}

/** @param {{x: number, y: number, z: number, w: number}} turned a quaternion of any length but nearly zero, which says nothing
 * @returns {number} about z, radians; NaN where that is not known */
function yawOf({ x, y, z, w }) {
  if (Math.hypot(x, y, z, w) < SHORTEST) return NaN;
  return Math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z);
}

/** Return whether a point can be shown. One that is not known is NaN, which is null in JSON.
 * @param {{x: unknown, y: unknown}} point */
export function isPlace({ x, y }) {
  return Math.abs(x ?? NaN) <= FARTHEST_M && Math.abs(y ?? NaN) <= FARTHEST_M;
}

/** Return a pose or transform in the plane, null if a value of it is not a number. @returns {Pose|null} */
export function planar(position, orientation) {
  const pose = { x: position?.x, y: position?.y, yaw: orientation ? yawOf(orientation) : NaN };
  return isPlace(pose) && Number.isFinite(pose.yaw) ? pose : null;
}

/** @param {[number, number][]} polygon @param {Point} point */
export function inside(polygon, { x, y }) {
  let within = false;
  for (const [[x1, y1], [x2, y2]] of edges(polygon)) {
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) within = !within;
  }
  return within;
}

/** Return whether a straight way that begins outside a polygon leads into it or through it. */
export function crosses(polygon, start, end) {
  if (inside(polygon, start)) return false;
  return inside(polygon, end) || edges(polygon).some(([[x1, y1], [x2, y2]]) =>
    meet(start, end, { x: x1, y: y1 }, { x: x2, y: y2 }));
}

function edges(polygon) {
  return polygon.map((corner, place) => [corner, polygon[(place + 1) % polygon.length]]);
}

function meet(a, b, c, d) {
  return side(a, b, c) * side(a, b, d) <= 0 && side(c, d, a) * side(c, d, b) <= 0 && side(a, b, c) !== side(a, b, d);
}

function side(a, b, point) {
  return (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x);
}

/** Return 1, 2 or 5 times a power of ten: the smallest that is not below `least`. @param {number} least above 0 */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((digit) => digit * power >= least * (1 - 1e-9)) ?? 10);
}

/** Return metres as text, to the centimetre, without a minus sign before zero. */
export function metresText(metres) {
  return (Math.round(metres * 100) / 100 + 0).toFixed(2);
}

/** Return the mean of a polygon's corners, the place of its name. @param {[number, number][]} polygon */
export function middleOf(polygon) {
  const sum = polygon.reduce(([x, y], corner) => [x + corner[0], y + corner[1]], [0, 0]);
  return { x: sum[0] / polygon.length, y: sum[1] / polygon.length };
}
