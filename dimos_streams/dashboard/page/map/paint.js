/** Draws a map: the floor, the things on it, robots and people. */

import { inMap } from "./floor.js";
import { ORIGIN, placed, roundStep } from "./geometry.js";
import { drawScene } from "./paint_scene.js";
import { write } from "./paint_text.js";
import { drawWho } from "./paint_who.js";
import { robotColour } from "./palette.js";

const SCAN_OLD_US = 1_000_000;

/**
 * The content of a map.
 * @typedef {{
 *   view: import("./view.js").View, colours: object, tiles: import("./tiles.js").Tiles, now: number,
 *   robots: {robot: import("./robot.js").RobotOnMap, place: number, name: string, followed: Set<string>, isStopped: boolean,
 *     scene: import("./scene.js").Scene, goals: {x: number, y: number, text: string, isSelected: boolean}[]}[],
 *   pin: {x: number, y: number}|null, hasCross: boolean,
 * }} Shown
 */

/** @param {CanvasRenderingContext2D} context @param {Shown} shown */
export function drawMap(context, shown) {
  const { view, colours, robots } = shown;
  context.fillStyle = colours["map-unknown"];
  context.fillRect(0, 0, view.width, view.height);
  for (const each of robots) drawFloor(context, each, shown);
  drawGrid(context, shown);
  for (const each of robots) drawScene(context, each, shown);
  for (const each of robots) drawTrail(context, each, shown);
  for (const each of robots) drawScan(context, each, shown);
  drawWho(context, shown);
  if (shown.pin) drawPin(context, view.toScreen(shown.pin), colours);
  if (shown.hasCross) drawCross(context, shown);
  drawScaleBar(context, shown);
}

/** Call `draw` while the context has the origin and direction of a pose, in pixels, y down. */
function standing(context, view, pose, draw) {
  const at = view.toScreen(pose);
  context.save();
  context.translate(Math.round(at.x), Math.round(at.y));
  context.rotate(-pose.yaw);
  draw();
  context.restore();
}

function drawFloor(context, { robot }, { view, colours, tiles }) {
  context.imageSmoothingEnabled = view.scale < 60;
  for (const grid of robot.grids.values()) {
    const stands = inMap(robot, grid.frame_id);
    if (stands) standing(context, view, stands, () => tiles.drawGrid(context, grid, view.scale, colours));
  }
  standing(context, view, inMap(robot) ?? ORIGIN, () => tiles.drawOccupancy(context, robot.occupancy, view.scale, colours));
}

/** Draw a line at each metre, or with more between them if they would be too close to each other. */
function drawGrid(context, { view, colours }) {
  const step = Math.max(1, roundStep(26 / view.scale));
  const { left, right, bottom, top } = view.bounds;
  context.strokeStyle = colours["map-grid"];
  context.lineWidth = 1;
  context.beginPath();
  for (let x = Math.ceil(left / step) * step; x <= right; x += step) {
    const at = Math.round(view.toScreen({ x, y: 0 }).x) + 0.5;
    context.moveTo(at, 0);
    context.lineTo(at, view.height);
  }
  for (let y = Math.ceil(bottom / step) * step; y <= top; y += step) {
    const at = Math.round(view.toScreen({ x: 0, y }).y) + 0.5;
    context.moveTo(0, at);
    context.lineTo(view.width, at);
  }
  context.stroke();
}

/** Draw the path that a robot has taken, fainter the longer ago. */
function drawTrail(context, { robot, place }, { view, colours }) {
  const stands = inMap(robot);
  const points = robot.trail.map((point) => view.toScreen(placed(stands, point)));
  if (robot.pose) points.push(view.toScreen(placed(stands, robot.pose)));
  context.strokeStyle = robotColour(colours, place);
  context.lineWidth = 2.5;
  context.lineCap = context.lineJoin = "round";
  const parts = 24;
  for (let part = 0; part < parts; part += 1) {
    const [from, to] = [part, part + 1].map((end) => Math.round((end / parts) * (points.length - 1)));
    if (to <= from) continue;
    context.globalAlpha = 0.08 + 0.72 * ((part + 1) / parts) ** 1.5;
    context.beginPath();
    for (let index = from; index <= to; index += 1) context.lineTo(points[index].x, points[index].y);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Draw the hits of the newest scan. */
function drawScan(context, { robot }, { view, colours, now }) {
  if (now - robot.hitsUtime > SCAN_OLD_US) return;
  const stands = inMap(robot);
  const size = Math.max(2, Math.min(4, view.scale * 0.045));
  context.fillStyle = colours["map-scan"];
  for (let index = 0; index < robot.hits.length; index += 2) {
    const { x, y } = view.toScreen(placed(stands, { x: robot.hits[index], y: robot.hits[index + 1] }));
    context.fillRect(x - size / 2, y - size / 2, size, size);
  }
}

function drawPin(context, { x, y }, colours) {
  context.beginPath();
  context.arc(x, y - 16, 8, Math.PI * 0.85, Math.PI * 0.15);
  context.lineTo(x, y);
  context.closePath();
  context.fillStyle = colours.accent;
  context.fill();
  context.strokeStyle = colours.panel;
  context.lineWidth = 2;
  context.stroke();
  context.beginPath();
  context.arc(x, y - 16, 3, 0, 2 * Math.PI);
  context.fillStyle = colours.panel;
  context.fill();
}

/** Draw a cross at the middle, the point that Enter asks for. */
function drawCross(context, { view, colours }) {
  const [x, y] = [Math.round(view.width / 2) + 0.5, Math.round(view.height / 2) + 0.5];
  for (const [width, stroke] of [[4, colours["map-halo"]], [1.5, colours.accent]]) {
    context.lineWidth = width;
    context.strokeStyle = stroke;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + dx * 4, y + dy * 4);
      context.lineTo(x + dx * 14, y + dy * 14);
    }
    context.stroke();
  }
}

function drawScaleBar(context, { view, colours }) {
  const metres = roundStep(56 / view.scale);
  const [x, y, long] = [12.5, view.height - 12.5, metres * view.scale];
  for (const [width, stroke] of [[4, colours["map-halo"]], [1.5, colours.text]]) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x, y - 5);
    context.lineTo(x, y);
    context.lineTo(x + long, y);
    context.lineTo(x + long, y - 5);
    context.stroke();
  }
  write(context, metres < 1 ? `${Math.round(metres * 100)} cm` : `${metres} m`, x + long / 2, y - 9, { colour: colours.text, colours, align: "center" });
}
