/** One robot: where it is, where it came from, its battery. */

import { filled, h } from "./tree.js";

export function robotView(name, { run }) {
  const robot = run.state.robots[name];
  const known = robot.x !== null && robot.y !== null && robot.yaw !== null;
  const place = known ? placeText(robot) : "It is not known where the robot is.";
  return h("div", { class: "robot" }, known && mapView(robot, run.trails.get(name) ?? [], place),
    h("p", {}, place, robot.battery !== null && [" · battery ",
      h("meter", { min: 0, max: 1, low: 0.2, value: robot.battery }), ` ${Math.round(robot.battery * 100)} %`]));
}

function placeText({ x, y, yaw, frame_id: frame }) {
  return `x ${x.toFixed(2)} m, y ${y.toFixed(2)} m, heading ${Math.round((yaw * 180) / Math.PI)}° in ${frame}`;
}

/** x to the right, y up; a grid of one metre. */
function mapView(robot, trail, label) {
  const xs = [robot.x, ...trail.map(({ x }) => x)];
  const ys = [robot.y, ...trail.map(({ y }) => y)];
  const [left, width] = span(xs, 8);
  const [bottom, height] = span(ys, 4);
  const top = -(bottom + height);
  const svg = document.getElementById("map").content.firstChild.cloneNode();
  const s = (tag, attributes) => filled(document.createElementNS(svg.namespaceURI, tag), attributes, []);
  const columns = Array.from({ length: width + 1 }, (_, i) => `M${left + i} ${top}v${height}`);
  const rows = Array.from({ length: height + 1 }, (_, i) => `M${left} ${top + i}h${width}`);
  return filled(svg, { viewBox: `${left} ${top} ${width} ${height}`, "aria-label": label }, [
    s("rect", { x: left, y: top, width, height }),
    s("path", { class: "grid", d: [...columns, ...rows].join("") }),
    s("polyline", { class: "trail", points: trail.map(({ x, y }) => `${x},${-y}`).join(" ") }),
    s("path", { class: "mark", d: "M0.28 0L-0.18 0.18L-0.08 0L-0.18 -0.18Z",
      transform: `translate(${robot.x} ${-robot.y}) rotate(${(-robot.yaw * 180) / Math.PI})` }),
  ]);
}

/** Whole metres that hold all values with some room around them: where they begin, and how many. */
function span(values, least) {
  const low = Math.floor(Math.min(...values) - 0.5);
  const size = Math.ceil(Math.max(...values) + 0.5) - low;
  return size >= least ? [low, size] : [low - Math.floor((least - size) / 2), least];
}
