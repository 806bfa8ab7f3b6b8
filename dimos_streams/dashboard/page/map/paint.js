/** Draws a map: the floor, what is on it, and who. */

import { inMap } from "./floor.js";
import { composed, middleOf, ORIGIN, placed, roundStep } from "./geometry.js";
import { clothesColour, robotColour } from "./palette.js";

const FONT = "11.5px system-ui, sans-serif";
const BOLD = "600 12px system-ui, sans-serif";
const FOLLOWED = "#ffc53d";
const ROBOT_M = 0.24;
const OLD_S = 60;
/** What a call and its module both say is one goal. */
const NEAR_M = 0.1;
const LINE_LETTERS = 20;
const LINE_PX = 14;
/** The width that a robot's name has, about. */
const NAME_PX = 60;
const SCAN_OLD_US = 1_000_000;

/**
 * What is drawn.
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
  for (const each of robots) drawRobot(context, each, shown);
  const withWords = { ...shown, taken: marksOnScreen(shown) };
  for (const each of robots) drawPeople(context, each, withWords);
  if (shown.pin) drawPin(context, view.toScreen(shown.pin), colours);
  if (shown.hasCross) drawCross(context, shown);
  drawScaleBar(context, shown);
}

/** Call `draw` with a context whose origin is that of a pose, in pixels, y down. */
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

/** Lines of whole metres, or of more where these would be too near each other. */
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

/** Zones, way-points, paths and goals. */
function drawScene(context, { robot, scene, goals, place }, { view, colours }) {
  const stands = inMap(robot, scene.frame_id);
  const on = (points) => points.map(([x, y]) => view.toScreen(placed(stands, { x, y })));
  if (stands) {
    for (const zone of scene.zones) drawZone(context, zone, on(zone.polygon), colours);
    drawRound(context, scene.waypoints, on(scene.waypoints.map(({ x, y }) => [x, y])), colours);
    const from = robot.pose && scene.path.length > 0 ? [view.toScreen(placed(inMap(robot), robot.pose))] : [];
    drawPath(context, [...from, ...on(scene.path)], robotColour(colours, place));
    if (scene.goal && !goals.some(({ x, y }) => Math.hypot(x - scene.goal.x, y - scene.goal.y) < NEAR_M)) drawGoal(context, on([[scene.goal.x, scene.goal.y]])[0], { text: "goal", isSelected: false }, colours);
  }
  for (const path of robot.paths.values()) {
    const from = inMap(robot, path.frame);
    if (from) drawPath(context, path.points.map((point) => view.toScreen(placed(from, point))), robotColour(colours, place));
  }
  const odometry = inMap(robot);
  for (const goal of goals) drawGoal(context, view.toScreen(placed(odometry, goal)), goal, colours);
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

/** Way-points, with the way around them. */
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

/** A flag. */
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

/** The way that it came, fainter the longer ago. */
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

/** What the newest scan hit. */
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

/** Who is followed has their words first. */
function drawPeople(context, each, shown) {
  const { view, colours, now } = shown;
  const stands = inMap(each.robot);
  const from = each.robot.pose && view.toScreen(placed(stands, each.robot.pose));
  const people = [...each.robot.people.values()];
  const isTied = ({ track }) => each.followed.has(track);
  for (const person of people.sort((one, other) => isTied(other) - isTied(one))) {
    const age = (now - person.utime) / 1e6;
    if (age > OLD_S) continue;
    const at = view.toScreen(placed(stands, person));
    const isFollowed = isTied(person);
    if (isFollowed && from) drawTie(context, from, at);
    context.globalAlpha = person.isSeen ? 1 : Math.max(0.25, 1 - age / OLD_S);
    drawPerson(context, at, person, isFollowed, colours);
    const lines = [...inLines(person.label), ...(age > 2 ? [`${Math.round(age)} s ago`] : [])];
    writeBeside(context, lines, at, shown, { colour: colours.text, colours, font: isFollowed ? BOLD : FONT });
    context.globalAlpha = 1;
  }
}

/** Where robots and people are drawn: no words are written over them. */
function marksOnScreen({ robots, view, now }) {
  const marks = robots.flatMap(({ robot }) => {
    const stands = inMap(robot);
    const people = [...robot.people.values()].filter(({ utime }) => now - utime < OLD_S * 1e6);
    const at = (point, size) => ({ ...view.toScreen(placed(stands, point)), size });
    return [...(robot.pose ? [at(robot.pose, Math.max(10, ROBOT_M * view.scale))] : []), ...people.map((person) => at(person, 9))];
  });
  const names = robots.filter(({ robot, name }) => robot.pose && name).map(({ robot }) => view.toScreen(placed(inMap(robot), robot.pose)))
    .map(({ x, y }) => ({ left: x - NAME_PX / 2, top: y + Math.max(10, ROBOT_M * view.scale), wide: NAME_PX, high: 20 }));
  return [...names, ...marks.map(({ x, y, size }) => ({ left: x - size, top: y - size, wide: 2 * size, high: 2 * size }))];
}

/** A label in lines that are not too long, two at most. */
function inLines(label) {
  const lines = [""];
  for (const word of label.split(/\s+/)) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (longer.length <= LINE_LETTERS || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.length > 2 ? [lines[0], `${lines[1]} …`] : lines;
}

/** Lines beside a mark: to its right, or where there is room that no other lines have taken. */
function writeBeside(context, lines, { x, y }, shown, style) {
  const { view, taken } = shown;
  context.font = style.font;
  const wide = Math.max(...lines.map((line) => context.measureText(line).width));
  const high = lines.length * LINE_PX;
  const places = [
    { left: x + 17, top: y - high / 2, align: "left" },
    { left: x - 17 - wide, top: y - high / 2, align: "right" },
    { left: x - wide / 2, top: y + 17, align: "center" },
    { left: x - wide / 2, top: y - 17 - high, align: "center" },
  ];
  const isFree = ({ left, top }) => left > 2 && left + wide < view.width - 2 && !taken.some((other) =>
    left < other.left + other.wide && other.left < left + wide && top < other.top + other.high && other.top < top + high);
  const { left, top, align } = places.find(isFree) ?? places[0];
  taken.push({ left, top, wide, high });
  const at = left + { left: 0, center: wide / 2, right: wide }[align];
  for (const [index, line] of lines.entries()) write(context, line, at, top + (index + 0.5) * LINE_PX + 1, { ...style, align });
}

/** Head and shoulders from above, in what they wear. */
function drawPerson(context, { x, y }, { label, isSeen }, isFollowed, colours) {
  if (isFollowed) {
    context.beginPath();
    context.arc(x, y, 13, 0, 2 * Math.PI);
    context.strokeStyle = colours.text;
    context.lineWidth = 5;
    context.stroke();
    context.strokeStyle = FOLLOWED;
    context.lineWidth = 3;
    context.stroke();
  }
  context.beginPath();
  context.arc(x, y, 7.5, 0, 2 * Math.PI);
  context.fillStyle = clothesColour(label) ?? colours.quiet;
  context.fill();
  context.strokeStyle = isSeen ? colours.text : colours.quiet;
  context.lineWidth = 1.5;
  context.setLineDash(isSeen ? [] : [3, 2]);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fillStyle = "#f3d9c0";
  context.fill();
}

/** From who follows to who is followed. */
function drawTie(context, from, to) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.strokeStyle = FOLLOWED;
  context.lineWidth = 2;
  context.setLineDash([4, 5]);
  context.stroke();
  context.setLineDash([]);
}

/** A disc with an arrow to where it looks. */
function drawRobot(context, { robot, place, name, isStopped }, { view, colours }) {
  if (!robot.pose) return;
  const pose = composed(inMap(robot), robot.pose);
  const size = Math.max(10, ROBOT_M * view.scale);
  const { x, y } = view.toScreen(pose);
  context.save();
  context.translate(x, y);
  context.rotate(-pose.yaw);
  const beam = context.createRadialGradient(0, 0, size, 0, 0, size * 4.5);
  const colour = robotColour(colours, place);
  beam.addColorStop(0, colour.replace("rgb(", "rgba(").replace(")", ", .35)"));
  beam.addColorStop(1, colour.replace("rgb(", "rgba(").replace(")", ", 0)"));
  context.fillStyle = beam;
  context.beginPath();
  context.moveTo(0, 0);
  context.arc(0, 0, size * 4.5, -0.5, 0.5);
  context.fill();
  context.beginPath();
  context.arc(0, 0, size, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
  context.strokeStyle = "#fff";
  context.lineWidth = 2.5;
  context.stroke();
  context.beginPath();
  context.moveTo(size * 0.62, 0);
  context.lineTo(-size * 0.4, size * 0.48);
  context.lineTo(-size * 0.15, 0);
  context.lineTo(-size * 0.4, -size * 0.48);
  context.closePath();
  context.fillStyle = "#fff";
  context.fill();
  context.restore();
  if (isStopped) write(context, "stopped", x, y - size - 9, { colour: colours.bad, colours, align: "center", font: BOLD });
  if (name) write(context, name, x, y + size + 10, { colour: colours.text, colours, align: "center", font: BOLD });
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

/** The middle, which Enter asks for. */
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

/** A text that can be read on whatever is below it. */
function write(context, text, x, y, { colour, colours, align = "left", font = FONT }) {
  context.font = font;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  context.strokeStyle = colours["map-halo"];
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
