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
const BESIDE_PX = 17;

/** Draw all who are there: robots above the lines to those they follow, and labels of people where there is room.
 * @param {CanvasRenderingContext2D} context @param {import("./paint.js").Shown} shown */
export function drawWho(context, shown) {
  for (const each of shown.robots) drawTies(context, each, shown);
  for (const each of shown.robots) drawRobot(context, each, shown);
  const people = peopleOn(shown.robots, shown.now).map((each) => ({ ...each, ...shown.view.toScreen(each), age: (shown.now - each.person.utime) / 1e6 }));
  for (const each of people) faded(context, each, () => drawPerson(context, each, shown.colours));
  const standing = standingOn(shown);
  const words = { ...shown, taken: marksOnScreen(standing, people) };
  for (const each of standing) nameRobot(context, each, words);
  for (const each of people) faded(context, each, () => namePerson(context, each, words));
}

/** Draw a person, fainter the longer they have been out of sight. */
function faded(context, { person, age }, draws) {
  context.globalAlpha = person.isSeen ? 1 : Math.max(0.25, 1 - age / OLD_S);
  draws();
  context.globalAlpha = 1;
}

/** Write a robot's name, if there are several, and that it is stopped, if it is, even where there is no room. */
function nameRobot(context, { name, isStopped, size, ...at }, shown) {
  const lines = [name, isStopped && "stopped"].filter(Boolean);
  const colour = isStopped ? shown.colours.bad : shown.colours.text;
  if (lines.length > 0) writeBeside(context, lines, { ...at, apart: size + 4, first: "below" }, shown, { colour, colours: shown.colours, font: BOLD, must: true });
}

/** Write a person's label; that of a person who is followed is written even where there is no room. */
function namePerson(context, { person, isFollowed, age, x, y }, shown) {
  const lines = [...inLines(person.label), ...(age > 2 ? [`${Math.round(age)} s ago`] : [])];
  const style = { colour: shown.colours.text, colours: shown.colours, font: isFollowed ? BOLD : FONT, must: isFollowed };
  writeBeside(context, lines, { x, y, apart: BESIDE_PX, first: "right" }, shown, style);
}

/** Return the robots whose pose is known, with their places on the screen. */
function standingOn({ robots, view }) {
  const size = Math.max(10, ROBOT_M * view.scale);
  return robots.filter(({ robot }) => robot.pose)
    .map(({ robot, name, isStopped }) => ({ name, isStopped, size, ...view.toScreen(placed(inMap(robot), robot.pose)) }));
}

/** Return the boxes in which robots and people are drawn: no labels are written over them. */
function marksOnScreen(standing, people) {
  return [...standing, ...people.map(({ x, y }) => ({ x, y, size: 9 }))]
    .map(({ x, y, size }) => ({ left: x - size, top: y - size, wide: 2 * size, high: 2 * size }));
}

/** Return a label in lines that are not too long, two at most. */
function inLines(label) {
  const lines = [""];
  for (const word of label.split(/\s+/)) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (longer.length <= LINE_LETTERS || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.length > 2 ? [lines[0], `${lines[1]} …`] : lines;
}

/** Write lines beside a mark, in the preferred place or in another one that is free. If none is, they are only written
 * if they must be. */
function writeBeside(context, lines, { x, y, apart, first }, shown, style) {
  const { view, taken } = shown;
  context.font = style.font;
  const wide = Math.max(...lines.map((line) => context.measureText(line).width));
  const high = lines.length * LINE_PX;
  const across = [{ left: x + apart, top: y - high / 2, align: "left" }, { left: x - apart - wide, top: y - high / 2, align: "right" }];
  const along = [{ left: x - wide / 2, top: y + apart, align: "center" }, { left: x - wide / 2, top: y - apart - high, align: "center" }];
  const places = first === "right" ? [...across, ...along] : [...along, ...across];
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

/** Draw a person's head and shoulders from above, in the colour of their clothes. */
function drawPerson(context, { x, y, isFollowed, person: { label, isSeen } }, colours) {
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

/** Draw lines from a robot to the people that it follows. */
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

/** Draw a robot as a disc with an arrow in the direction that it faces. */
function drawRobot(context, { robot, place }, { view, colours }) {
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
}
