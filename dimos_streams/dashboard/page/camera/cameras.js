/** Cameras among the live topics, and the detections that belong to them. No DOM. */

const NO_CAMERA = /depth|disparity|instance|mask|label|segment|semantic/i;
const LIKELY = /colou?r|rgb/i;
const MOST = 4;

/** Return the topics with pictures, cameras first.
 * @param {object[]} topics */
export function camerasOf(topics, robot) {
  const pictures = topics.filter((topic) => topic.kind === "picture" && (robot === "" || topic.robot === robot));
  const rank = ({ topic }) => (NO_CAMERA.test(topic) ? 2 : LIKELY.test(topic) ? 0 : 1);
  return pictures.sort((one, other) => rank(one) - rank(other) || one.topic.localeCompare(other.topic));
}

/** Return the cameras that are shown by default: one of each robot, a few at most. */
export function defaultCameras(cameras) {
  const first = new Map();
  for (const camera of cameras) {
    if (!first.has(camera.robot) && !NO_CAMERA.test(camera.topic)) first.set(camera.robot, camera);
  }
  return [...first.values()].sort((one, other) => one.robot.localeCompare(other.robot)).slice(0, MOST);
}

/** Return the topic of detections in a camera's pictures; null for depth and the like, whose pixels differ. */
export function detectionsFor(camera, topics) {
  if (NO_CAMERA.test(camera.topic)) return null;
  const own = topics.filter((topic) => topic.kind === "detections" && topic.robot === camera.robot);
  return own.find(({ topic }) => topic.startsWith(camera.topic.slice(0, camera.topic.lastIndexOf("/") + 1))) ?? own[0] ?? null;
}
