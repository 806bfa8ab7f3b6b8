/** The people that robots follow, according to open calls. No DOM. */

import { namespaceOf } from "../format.js";

/**
 * @returns {{track: string, callId: string, description: string, distance: number|null}[]} by what the newest progress
 *   of each open call says; a track is that of the robot's detections
 */
export function followedBy(state, robot) {
  const followed = [];
  for (const call of state?.calls ?? []) {
    const { track, distance_m: distance = null } = call.progress ?? {};
    if (typeof track !== "string" || track === "" || namespaceOf(call.module) !== robot) continue;
    followed.push({ track, callId: call.call_id, description: String(call.arguments.description ?? ""), distance });
  }
  return followed;
}
