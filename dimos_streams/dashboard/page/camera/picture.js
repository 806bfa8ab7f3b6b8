/** Draws boxes around what is detected in a camera's picture. */

import { beginning, drawn } from "../texts.js";

const FONT = "600 12px system-ui, sans-serif";
const LINE = 20;
const OTHERS = "#ffffff";
const FOLLOWED = "#ffc53d";
const INK = "#10151c";
/** Maximum width of a label, as a fraction of the picture's, for those who are not followed. */
const OTHERS_SHARE = 0.6;

/** Return the place of a picture in a canvas, whole and as large as it can be. */
export function placeFor(picture, width, height) {
  const scale = Math.min(width / picture.width, height / picture.height);
  const [wide, high] = [picture.width * scale, picture.height * scale];
  return { left: (width - wide) / 2, top: (height - high) / 2, width: wide, height: high, scale };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number, height: number, scale: number}} place of the picture
 * @param {import("./boxes.js").Box[]} boxes
 * @param {Set<string>} followed tracks
 */
export function drawBoxes(context, place, boxes, followed) {
  const ordered = [...boxes].sort((one, other) => followed.has(one.track) - followed.has(other.track));
  context.save();
  context.beginPath();
  context.rect(place.left, place.top, place.width, place.height);
  context.clip();
  context.font = FONT;
  context.textBaseline = "middle";
  const onScreen = ordered.map((box) => ({ box, ...shown(box, place), isFollowed: followed.has(box.track) }));
  for (const each of onScreen) drawFrame(context, each);
  const taken = [];
  for (const each of onScreen.reverse()) taken.push(drawLabel(context, each, place, taken));
  context.restore();
}

function shown(box, { left, top, scale }) {
  return { x: left + box.left * scale, y: top + box.top * scale, w: box.width * scale, h: box.height * scale };
}

/** Draw the frame of a box: with heavy corners for a person who is followed, thin for others. */
function drawFrame(context, { x, y, w, h, isFollowed }) {
  context.lineJoin = "round";
  context.strokeStyle = "#000a";
  context.lineWidth = isFollowed ? 4.5 : 3.5;
  context.strokeRect(x, y, w, h);
  context.strokeStyle = isFollowed ? FOLLOWED : OTHERS;
  context.lineWidth = isFollowed ? 2 : 1.5;
  context.strokeRect(x, y, w, h);
  if (!isFollowed) return;
  const long = Math.min(18, w / 3, h / 3);
  context.lineWidth = 5;
  context.lineCap = "round";
  context.beginPath();
  for (const [cx, dx] of [[x, long], [x + w, -long]]) {
    for (const [cy, dy] of [[y, long], [y + h, -long]]) {
      context.moveTo(cx + dx, cy);
      context.lineTo(cx, cy);
      context.lineTo(cx, cy + dy);
    }
  }
  context.stroke();
}

/** @returns {{x: number, y: number, w: number}} the place that it takes */
function drawLabel(context, { box, x, y, w, h, isFollowed }, place, taken) {
  const words = fitting(context, box, isFollowed, place.width * (isFollowed ? 1 : OTHERS_SHARE) - 16);
  const wide = context.measureText(words).width + 14;
  const left = Math.max(place.left + 2, Math.min(x - 1, place.left + place.width - wide - 2));
  const places = [y - LINE - 3, y + 3, y + h + 3, y + LINE + 5].map((at) =>
    Math.max(place.top + 2, Math.min(at, place.top + place.height - LINE - 2)));
  const free = (at) => !taken.some((other) => Math.abs(other.y - at) < LINE && left < other.x + other.w && other.x < left + wide);
  const top = places.find(free) ?? places[0];
  context.fillStyle = isFollowed ? FOLLOWED : "#10151cd0";
  context.beginPath();
  context.roundRect(left, top, wide, LINE, 5);
  context.fill();
  context.fillStyle = isFollowed ? INK : OTHERS;
  context.fillText(words, left + 7, top + LINE / 2 + 0.5);
  return { x: left, y: top, w: wide };
}

/** Return a label: `Following: person in a red shirt · 1.8 m · #2 · 92 %`. @param {import("./boxes.js").Box} box */
export function labelOf(box, isFollowed) {
  return partsOf(box, isFollowed).join(" · ");
}

/** Return the parts of a label: who it is, then what else is known, the most telling first. */
function partsOf({ label, distance, track, score }, isFollowed) {
  const [far, name, sure] = [distance !== null && `${distance.toFixed(1)} m`, track && drawn(`#${track}`), Number.isFinite(score) && `${Math.round(score * 100)} %`];
  return [`${isFollowed ? "Following: " : ""}${label}`, far, name, sure].filter(Boolean);
}

/** Return as much of a label as has room: facts are dropped first, then the end of its words. */
function fitting(context, box, isFollowed, width) {
  const parts = partsOf(box, isFollowed);
  for (let length = parts.length; length > 0; length -= 1) {
    const shorter = parts.slice(0, length).join(" · ");
    if (context.measureText(shorter).width <= width) return shorter;
  }
  let [text] = parts;
  while (text.length > 3 && context.measureText(`${text}…`).width > width) text = beginning(text, text.length - 1).trimEnd();
  return `${text}…`;
}
