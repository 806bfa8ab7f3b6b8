/** Draws what modules report of the floor and of the path ahead. */

import { inMap } from "./floor.js";
import { middleOf, placed } from "./geometry.js";
import { robotColour } from "./palette.js";
import { BOLD, write } from "./paint_text.js";

/** Maximum distance, in metres, between the goals of a call and of its module that are drawn as one. */
const NEAR_M = 0.1;

/** Draw zones, way-points, paths and goals. */
export function drawScene(context, { robot, scene, goals, place }, { view, colours }) {
  const stands = inMap(robot, scene.frame_id);
  const odometry = inMap(robot);
  const on = (points) => points.map(([x, y]) => view.toScreen(placed(stands, { x, y })));
  if (stands) {
    for (const zone of scene.zones) drawZone(context, zone, on(zone.polygon), colours);
    drawRound(context, scene.waypoints, on(scene.waypoints.map(({ x, y }) => [x, y])), colours);
    const from = robot.pose && scene.path.length > 0 ? [view.toScreen(placed(odometry, robot.pose))] : [];
    drawPath(context, [...from, ...on(scene.path)], robotColour(colours, place));
    const at = scene.goal && placed(stands, scene.goal);
    const isCalls = (goal) => areNear(placed(odometry, goal), at);
    if (at && !goals.some(isCalls)) drawGoal(context, view.toScreen(at), { text: "goal", isSelected: false }, colours);
  }
  for (const path of robot.paths.values()) {
    const from = inMap(robot, path.frame);
    if (from) drawPath(context, path.points.map((point) => view.toScreen(placed(from, point))), robotColour(colours, place));
  }
  for (const goal of goals) drawGoal(context, view.toScreen(placed(odometry, goal)), goal, colours);
}

function areNear(one, other) {
  return Math.hypot(one.x - other.x, one.y - other.y) < NEAR_M;
}

function drawZone(context, { name, polygon, restricted }, corners, colours) {
  if (corners.length < 3) return;
  context.beginPath();
  for (const { x, y } of corners) context.lineTo(x, y);
  context.closePath();
  if (restricted) {
    context.globalAlpha = 0.45;
    context.fillStyle = context.createPattern(colours.hatch, "repeat");
    context.fill();
    context.globalAlpha = 1;
  }
  context.strokeStyle = restricted ? colours["map-zone"] : colours.quiet;
  context.lineWidth = 1.5;
  context.setLineDash(restricted ? [] : [5, 4]);
  context.stroke();
  context.setLineDash([]);
  const middle = middleOf(polygon.map((_, place) => [corners[place].x, corners[place].y]));
  write(context, name, middle.x, middle.y, { colour: restricted ? colours.bad : colours.quiet, colours, align: "center", font: BOLD });
}

/** Draw way-points, and the round that connects them. */
function drawRound(context, waypoints, points, colours) {
  if (points.length === 0) return;
  context.strokeStyle = colours["map-way"];
  context.lineWidth = 1;
  context.setLineDash([2, 5]);
  context.beginPath();
  for (const { x, y } of points) context.lineTo(x, y);
  if (points.length > 2) context.closePath();
  context.stroke();
  context.setLineDash([]);
  for (const [index, { x, y }] of points.entries()) {
    context.beginPath();
    context.moveTo(x, y - 6);
    context.lineTo(x + 6, y);
    context.lineTo(x, y + 6);
    context.lineTo(x - 6, y);
    context.closePath();
    context.fillStyle = colours.panel;
    context.fill();
    context.strokeStyle = colours["map-way"];
    context.lineWidth = 2;
    context.stroke();
    write(context, waypoints[index].name ?? String(index + 1), x + 10, y, { colour: colours["map-way"], colours });
  }
}

function drawPath(context, points, stroke) {
  if (points.length < 2) return;
  context.beginPath();
  for (const { x, y } of points) context.lineTo(x, y);
  context.strokeStyle = stroke;
  context.lineWidth = 2.5;
  context.lineJoin = "round";
  context.setLineDash([8, 6]);
  context.stroke();
  context.setLineDash([]);
}

/** Draw a flag at a goal. */
function drawGoal(context, { x, y }, { text, isSelected }, colours) {
  context.strokeStyle = colours["map-halo"];
  context.lineWidth = 5;
  flag(context, x, y);
  context.stroke();
  context.strokeStyle = context.fillStyle = isSelected ? colours.accent : colours.text;
  context.lineWidth = 2;
  context.stroke();
  context.fill();
  write(context, text, x + 17, y - 14, { colour: isSelected ? colours.accent : colours.text, colours });
}

function flag(context, x, y) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x, y - 20);
  context.lineTo(x + 13, y - 15);
  context.lineTo(x, y - 10);
}
