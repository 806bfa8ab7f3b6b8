/** Draws robots and people. */

import { inMap } from "./floor.js";
import { composed, placed } from "./geometry.js";
import { clothesColour, robotColour } from "./palette.js";
import { peopleOn } from "./people.js";
import { BOLD, FONT, write } from "./paint_text.js";

const FOLLOWED = "#ffc53d";
const ROBOT_M = 0.24;
const OLD_S = 60;
const LINE_LETTERS = 20;
const LINE_PX = 14;
/** The width that a robot's name has, about. */
const NAME_PX = 60;

/** All who are there, robots above the lines to whom they follow, and people's words where there is room.
 * @param {CanvasRenderingContext2D} context @param {import("./paint.js").Shown} shown */
export function drawWho(context, shown) {
  for (const each of shown.robots) drawTies(context, each, shown);
  for (const each of shown.robots) drawRobot(context, each, shown);
  const people = peopleOn(shown.robots, shown.now);
  drawPeople(context, people, { ...shown, taken: marksOnScreen(shown, people) });
}

/** Who is followed has their words first, and has them in any case. */
function drawPeople(context, people, shown) {
  const { view, colours, now } = shown;
  for (const { person, isFollowed, ...place } of people) {
    const age = (now - person.utime) / 1e6;
    const at = view.toScreen(place);
    context.globalAlpha = person.isSeen ? 1 : Math.max(0.25, 1 - age / OLD_S);
    drawPerson(context, at, person, isFollowed, colours);
    const lines = [...inLines(person.label), ...(age > 2 ? [`${Math.round(age)} s ago`] : [])];
    writeBeside(context, lines, at, shown, { colour: colours.text, colours, font: isFollowed ? BOLD : FONT, must: isFollowed });
    context.globalAlpha = 1;
  }
}

/** Where robots and people are drawn: no words are written over them. */
function marksOnScreen({ robots, view }, people) {
  const size = Math.max(10, ROBOT_M * view.scale);
  const standing = robots.filter(({ robot }) => robot.pose).map(({ robot, name }) => ({ name, size, ...view.toScreen(placed(inMap(robot), robot.pose)) }));
  const marks = [...standing, ...people.map((place) => ({ ...view.toScreen(place), size: 9 }))];
  const names = standing.filter(({ name }) => name)
    .map(({ x, y }) => ({ left: x - NAME_PX / 2, top: y + size, wide: NAME_PX, high: 20 }));
  return [...names, ...marks.map(({ x, y, size: far }) => ({ left: x - far, top: y - far, wide: 2 * far, high: 2 * far }))];
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

/** Lines beside a mark: to its right, or where there is room that no other lines have taken; else only those that must be. */
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
  const isIn = ({ left, top }) => left > 2 && left + wide < view.width - 2 && top > 2 && top + high < view.height - 2;
  const isFree = ({ left, top }) => isIn({ left, top }) && !taken.some((other) =>
    left < other.left + other.wide && other.left < left + wide && top < other.top + other.high && other.top < top + high);
  const place = places.find(isFree) ?? (style.must ? places.find(isIn) ?? places[0] : null);
  if (place === null) return;
  const { left, top, align } = place;
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
function drawTies(context, { robot, followed }, { view, now }) {
  const stands = inMap(robot);
  for (const person of robot.people.values()) {
    if (!robot.pose || !followed.has(person.track) || now - person.utime > OLD_S * 1e6) continue;
    drawTie(context, view.toScreen(placed(stands, robot.pose)), view.toScreen(placed(stands, person)));
  }
}

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
