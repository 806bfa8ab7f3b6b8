/** What a robot's modules say of its surroundings: zones, way-points, goal and path. Free of the DOM. */

/**
 * @typedef {{
 *   zones: {name: string, polygon: [number, number][], restricted: boolean}[],
 *   waypoints: {name: string, x: number, y: number}[], goal: {x: number, y: number}|null, path: [number, number][],
 *   frame_id: string,
 * }} Scene in metres of its frame, which is that of the odometry if it has no name
 */

/** So skills and gates call the frame of the odometry, whatever that calls itself. */
const ODOMETRY = "odom";
const NOTHING = { zones: [], waypoints: [], goal: null, path: [], frame_id: "" };

/** @param {object|null} state the monitor's snapshot @param {string} robot a namespace @returns {Scene} */
export function sceneOf(state, robot) {
  const scene = { ...NOTHING, ...state?.scene?.[robot] };
  return scene.frame_id === ODOMETRY ? { ...scene, frame_id: "" } : scene;
}
