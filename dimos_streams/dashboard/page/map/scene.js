/** A robot's surroundings, as its modules report them: zones, way-points, goal and path. No DOM. */

/**
 * @typedef {{
 *   zones: {name: string, polygon: [number, number][], restricted: boolean}[],
 *   waypoints: {name: string, x: number, y: number}[], goal: {x: number, y: number}|null, path: [number, number][],
 *   frame_id: string,
 * }} Scene in metres of its frame, which is that of the odometry if it has no name
 */

/** The name that skills and gates use for the frame of the odometry, whatever its real name is. */
const ODOMETRY = "odom";
const NOTHING = { zones: [], waypoints: [], goal: null, path: [], frame_id: "" };

/** @returns {Scene} */
export function sceneOf(state, robot) {
  const scene = { ...NOTHING, ...state?.scene?.[robot] };
  return scene.frame_id === ODOMETRY ? { ...scene, frame_id: "" } : scene;
}
