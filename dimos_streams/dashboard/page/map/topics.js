/** The topics that a map is made of. No DOM. */

/** Maximum rates of the kinds of topics that the map uses, in Hz. */
const RATES = { odometry: 15, scan: 10, detections: 10, frames: 1, grid: 1, path: 2 };

/**
 * @param {{topic: string, type: string, kind: string, robot: string}[]} topics that are live
 * @returns {{topic: string, rate: number}[]} with the rate at which each is watched
 */
export function watchedTopics(topics, robot) {
  const hasOdometry = new Set(topics.filter(({ kind }) => kind === "odometry").map((topic) => topic.robot));
  const isPose = ({ type, topic, robot: whose }) =>
    type === "geometry_msgs.PoseStamped" && /(^|\/)odom(#|$)/.test(topic) && !hasOdometry.has(whose);
  // Other topics of frames are ground truth of simulators, which a robot does not know.
  const isUsed = ({ kind, topic }) => kind in RATES && (kind !== "frames" || /\/tf(_static)?$/.test(topic));
  return topics.filter((topic) => (isUsed(topic) || isPose(topic)) && (robot === "" || topic.robot === robot))
    .map((topic) => ({ topic: topic.topic, rate: RATES[topic.kind] ?? RATES.odometry }));
}
