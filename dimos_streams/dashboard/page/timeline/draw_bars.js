/** Draws the bars of calls, each with its updates, sign and text. */

import { drawn } from "../texts.js";
import { LEGIBLE, PAD, shortened, widthOf } from "./draw_text.js";
import { lookOf } from "../calls/outcomes.js";
import { extent, ROW } from "./places.js";
import { xOf } from "./scale.js";
import { labelOf, saidOf } from "./words.js";

const BAR = 20;
const NARROW = 8;
const SIGN = 12;

const signs = new Map();

/** Draw a pale background under calls that belong together. */
export function familyOf(g, scene, { from, to, row, rows }, seen) {
  if (row > seen.to || row + rows < seen.from) return;
  const part = extent(scene, from, to);
  if (!part) return;
  g.fillStyle = scene.colour("raised");
  g.beginPath();
  g.roundRect(Math.max(part.x, -20) - 2, row * ROW, Math.min(part.end, scene.width + 20) - Math.max(part.x, -20) + 4, rows * ROW, 7);
  g.fill();
}

export function bars(g, scene, rows) {
  const ends = nextBegins(scene);
  for (const bar of scene.layout.bars) {
    if (bar.row < rows.from || bar.row > rows.to) continue;
    const part = extent(scene, bar.call.begin, bar.call.end ?? Infinity);
    if (part) barOf(g, scene, bar, part, ends.get(bar) ?? Infinity);
  }
}

/** Return the limit, in pixels, of the text beside each bar: where the next bar of its row begins. */
function nextBegins({ layout, view, width }) {
  const found = new Map();
  layout.bars.forEach((bar, place) => {
    const next = layout.bars[place + 1];
    if (next?.row === bar.row) found.set(bar, xOf(view, width, next.call.begin));
  });
  return found;
}

function barOf(g, scene, { call, row }, { x, end, left, right }, nextX) {
  const { colour, selected, cursor, hovered, until } = scene;
  const isYet = call.begin > until;
  const state = until < (call.end ?? Infinity) && !isYet && call.end !== null ? "open" : call.state;
  const look = lookOf(isYet ? "requested" : state);
  const [y, tone] = [row * ROW + (ROW - BAR) / 2, colour(look.colour)];
  if (end - x < NARROW && ![selected, cursor, hovered].includes(call.id)) {
    g.fillStyle = tone;
    g.globalAlpha = isYet ? 0.3 : 0.65;
    g.fillRect(x, y, Math.max(1.5, Math.min(end, nextX) - x), BAR);
    g.globalAlpha = 1;
    label(g, scene, call, look, { y, left, right, nextX });
    return;
  }
  g.save();
  if (isYet) g.globalAlpha = 0.45;
  const shape = new Path2D();
  shape.roundRect(left === x ? x : left - 8, y, (right === end ? end : right + 8) - (left === x ? x : left - 8), BAR, 4);
  g.fillStyle = colour("panel");
  g.fill(shape);
  g.globalAlpha *= call.id === hovered || call.id === selected ? 0.34 : 0.2;
  g.fillStyle = tone;
  if (look.dash.length === 0 || look.hatched) g.fill(shape);
  g.globalAlpha = isYet ? 0.45 : 1;
  if (look.hatched) hatch(g, left, y, right, tone);
  if (call.fraction !== null && state === "open") {
    g.fillStyle = tone;
    g.fillRect(left, y + BAR - 4, Math.max(0, x + (end - x) * call.fraction - left), 4);
  }
  g.lineWidth = call.id === selected ? 2.5 : 1.25;
  g.strokeStyle = tone;
  g.setLineDash(call.id === selected ? [] : look.dash);
  g.stroke(shape);
  g.setLineDash([]);
  ticks(g, scene, call, y, tone);
  label(g, scene, call, look, { y, left, right, nextX });
  if (call.id === cursor) {
    g.strokeStyle = colour("accent");
    g.lineWidth = 2;
    g.strokeRect(left - 2.5, y - 1.5, right - left + 5, BAR + 3);
  }
  g.restore();
}

function hatch(g, left, y, right, tone) {
  g.save();
  g.beginPath();
  g.rect(left, y, right - left, BAR);
  g.clip();
  g.strokeStyle = tone;
  g.globalAlpha = 0.16;
  g.lineWidth = 2;
  g.beginPath();
  for (let x = left - BAR - ((left - BAR) % 8); x < right; x += 8) {
    g.moveTo(x, y + BAR);
    g.lineTo(x + BAR, y);
  }
  g.stroke();
  g.restore();
}

/** Draw a mark for each update, unless it is too close to the last one; a gap is drawn as a break in the bar. */
function ticks(g, { view, width, until, colour }, call, y, tone) {
  let before = -Infinity;
  for (const tick of call.ticks) {
    const x = Math.round(xOf(view, width, tick.utime));
    if (x < 0 || x > width || tick.utime > until || (x - before < 3 && tick.type !== "gap")) continue;
    before = x;
    g.fillStyle = tick.isBad ? colour("bad") : tone;
    if (tick.type === "gap") {
      g.fillRect(x - 3, y - 2, 2, BAR + 4);
      g.fillRect(x + 1, y - 2, 2, BAR + 4);
    } else {
      g.fillRect(x - 1, y, 2, 5);
      g.fillRect(x - 2, y, 4, 2);
    }
  }
}

/** Draw the sign and label of a call in its bar or behind it, wherever there is room. */
function label(g, scene, call, look, { y, left, right, nextX }) {
  const inside = right - left - SIGN - 2 * PAD;
  const outside = Math.min(nextX, scene.width) - right - SIGN - 2 * PAD;
  if (Math.max(inside, outside) < -PAD) return;
  const [text, said] = [labelOf(call), saidOf(call)].map(drawn);
  const wide = widthOf(g, text);
  const isInside = inside >= Math.min(wide, outside, LEGIBLE);
  if ((isInside ? inside : outside) < -PAD) return;
  const x = (isInside ? left : right) + PAD - 2;
  sign(g, look, x, y + (BAR - SIGN) / 2, scene.colour(look.colour));
  const shown = shortened(g, text, isInside ? inside : outside, wide);
  g.fillStyle = scene.colour("text");
  if (shown) g.fillText(shown, x + SIGN + 3, y + BAR / 2 + 0.5);
  const room = (isInside ? inside : outside) - wide - 2 * PAD;
  if (shown !== text || !said || room < LEGIBLE) return;
  g.fillStyle = scene.colour("quiet");
  g.fillText(shortened(g, said, room, widthOf(g, said)), x + SIGN + 3 + wide + 2 * PAD, y + BAR / 2 + 0.5);
}

/** @param {CanvasRenderingContext2D} g */
function sign(g, look, x, y, tone) {
  if (!signs.has(look.sign)) signs.set(look.sign, new Path2D(look.sign));
  g.save();
  g.translate(x, y);
  g.strokeStyle = tone;
  g.lineWidth = 1.8;
  g.lineCap = g.lineJoin = "round";
  g.stroke(signs.get(look.sign));
  g.restore();
}
