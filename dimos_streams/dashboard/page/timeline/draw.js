/** Draws what is seen of the calls on a canvas. Nothing here knows the page. */

import { lookOf } from "./outcomes.js";
import { marks, xOf } from "./scale.js";
import { labelOf, nameOf, saidOf } from "./words.js";
import { drawn } from "../texts.js";

export const AXIS = 22;
export const ROW = 24;
export const LANE = 18;
const BAR = 20;
const PAD = 6;
const MIN_WIDTH = 4;
const LEGIBLE = 90;
const NARROW = 8;
const SIGN = 12;
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const SMALL = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
export const MAX_LANES = 4;

const signs = new Map();
const widths = new Map();
const MAX_WIDTHS = 2000;

/**
 * @typedef {{layout: import("./layout.js").Layout, view: import("./scale.js").View, width: number, height: number,
 *   scroll: number, now: number, until: number, selected: string|null, cursor: string|null, hovered: string|null,
 *   breaks: import("./calls.js").Break[], bands: import("./layout.js").Band[], knownFrom: number, before: string, colour: (name: string) => string}} Scene
 * Lengths are in pixels of CSS. What is later than `until` has not happened yet, where a recording is looked at; `before`
 * is what there is to say of the time before `knownFrom`.
 */

/** Where the rows and the lanes are. @param {Scene} scene */
export function places({ layout, height }) {
  const lanes = Math.min(layout.lanes.length, MAX_LANES);
  const lanesTop = height - lanes * LANE;
  return { top: AXIS, bottom: lanesTop, lanesTop, lanes };
}

/** The part of a bar that is seen; null if none is. @param {Scene} scene */
export function extent(scene, from, to) {
  const { view, width, now } = scene;
  const x = xOf(view, width, from);
  const end = Math.max(xOf(view, width, Math.min(to, Math.max(now, from))), x + MIN_WIDTH);
  if (end < 0 || x > width) return null;
  return { x, end, left: Math.max(x, 0), right: Math.min(end, width) };
}

/** @param {CanvasRenderingContext2D} g @param {Scene} scene */
export function draw(g, scene) {
  const { width, height, colour } = scene;
  const { top, bottom } = places(scene);
  g.clearRect(0, 0, width, height);
  g.font = FONT;
  g.textBaseline = "middle";
  grid(g, scene);
  g.save();
  g.beginPath();
  g.rect(0, top, width, bottom - top);
  g.clip();
  g.translate(0, top - scene.scroll);
  const rows = { from: Math.floor(scene.scroll / ROW), to: Math.ceil((scene.scroll + bottom - top) / ROW) };
  for (const family of scene.layout.families) familyOf(g, scene, family, rows);
  bands(g, scene);
  bars(g, scene, rows);
  g.restore();
  unknown(g, scene);
  sections(g, scene);
  lanes(g, scene);
  breaks(g, scene);
  nowLine(g, scene);
  g.fillStyle = colour("line");
  g.fillRect(0, top - 1, width, 1);
}

function grid(g, scene) {
  const { view, width, height, colour } = scene;
  g.font = SMALL;
  for (const { utime, text } of marks(view, width)) {
    const x = Math.round(xOf(view, width, utime));
    g.fillStyle = colour("line");
    g.fillRect(x, AXIS - 5, 1, height - AXIS + 5);
    g.fillStyle = colour("quiet");
    g.fillText(text, x + 4, AXIS / 2);
  }
  g.font = FONT;
}

/** The names of robots, where there are several. */
function sections(g, scene) {
  const { layout, width, colour, scroll } = scene;
  if (layout.sections.length < 2) return;
  const { top, bottom } = places(scene);
  g.font = `600 ${SMALL}`;
  for (const { name, row } of layout.sections) {
    const y = top + row * ROW - scroll;
    if (y < top - 2 || y + ROW > bottom) continue;
    g.fillStyle = colour("raised");
    g.fillRect(0, y, width, ROW - 4);
    g.fillStyle = colour("quiet");
    g.fillText(drawn(name) || "no namespace", PAD, y + ROW / 2 - 1);
  }
  g.font = FONT;
}

/** Times in which robots were kept still, over the rows of these. */
function bands(g, scene) {
  const { layout, view, width, now, colour } = scene;
  for (const { robot, from, to, text: said, tone } of scene.bands) {
    const text = drawn(said);
    const [x, end] = [xOf(view, width, from), xOf(view, width, to ?? now)];
    if (end < 0 || x > width) continue;
    for (const { name, row, rows } of layout.sections.filter((section) => robot === null || section.name === robot)) {
      const [left, y, wide] = [Math.max(0, x), row * ROW, Math.min(width, end) - Math.max(0, x)];
      g.fillStyle = colour(tone);
      g.globalAlpha = 0.13;
      g.fillRect(left, y, wide, rows * ROW + ROW);
      g.globalAlpha = 1;
      g.font = `600 ${SMALL}`;
      if (g.measureText(text).width + PAD < wide) g.fillText(text, left + 4, y + rows * ROW + ROW / 2);
      g.font = FONT;
    }
  }
}

/** A quiet ground under calls that belong together. */
function familyOf(g, scene, { from, to, row, rows }, seen) {
  if (row > seen.to || row + rows < seen.from) return;
  const part = extent(scene, from, to);
  if (!part) return;
  g.fillStyle = scene.colour("raised");
  g.beginPath();
  g.roundRect(Math.max(part.x, -20) - 2, row * ROW, Math.min(part.end, scene.width + 20) - Math.max(part.x, -20) + 4, rows * ROW, 7);
  g.fill();
}

function bars(g, scene, rows) {
  const ends = nextBegins(scene);
  for (const bar of scene.layout.bars) {
    if (bar.row < rows.from || bar.row > rows.to) continue;
    const part = extent(scene, bar.call.begin, bar.call.end ?? Infinity);
    if (part) barOf(g, scene, bar, part, ends.get(bar) ?? Infinity);
  }
}

/** Until where a text may go on beside its bar: where the next bar of its row begins. */
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

/** One line for each update, where they are apart; a gap is a break through the bar. */
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

/** Its sign and name, in the bar or behind it, wherever there is room. */
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

/** The width of a text in the font of bars. */
function widthOf(g, text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size >= MAX_WIDTHS) widths.clear();
    width = g.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

function shortened(g, text, room, wide) {
  if (wide <= room) return text;
  const letters = Math.floor((text.length * room) / wide) - 1;
  return letters >= 3 ? `${text.slice(0, letters)}…` : "";
}

/** @param {CanvasRenderingContext2D} g */
export function sign(g, look, x, y, tone) {
  if (!signs.has(look.sign)) signs.set(look.sign, new Path2D(look.sign));
  g.save();
  g.translate(x, y);
  g.strokeStyle = tone;
  g.lineWidth = 1.8;
  g.lineCap = g.lineJoin = "round";
  g.stroke(signs.get(look.sign));
  g.restore();
}

function lanes(g, scene) {
  const { layout, width, height, colour } = scene;
  const { lanesTop } = places(scene);
  if (layout.lanes.length === 0) return;
  g.fillStyle = colour("panel");
  g.fillRect(0, lanesTop - 1, width, height - lanesTop + 1);
  g.fillStyle = colour("line");
  g.fillRect(0, lanesTop - 1, width, 1);
  g.font = SMALL;
  layout.lanes.slice(0, MAX_LANES).forEach(({ resource, holds }, place) => {
    const y = lanesTop + place * LANE;
    for (const hold of holds) {
      const part = extent(scene, hold.from, hold.to);
      if (!part || hold.from > scene.until) continue;
      g.fillStyle = colour("warn");
      g.globalAlpha = hold.call.id === scene.selected ? 0.5 : 0.26;
      g.fillRect(part.left, y + 2, part.right - part.left, LANE - 4);
      g.globalAlpha = 1;
      g.fillRect(part.left, y + 2, 1.5, LANE - 4);
      if (part.right - part.left < LEGIBLE / 2) continue;
      const text = drawn(`${nameOf(hold.call)} holds ${resource}`);
      const shown = shortened(g, text, part.right - part.left - 2 * PAD, g.measureText(text).width);
      g.fillStyle = colour("text");
      if (shown) g.fillText(shown, part.left + PAD, y + LANE / 2 + 0.5);
    }
    tag(g, scene, drawn(resource), y);
  });
  g.font = FONT;
}

/** The name of a lane at its left edge, over what is there. */
function tag(g, { colour }, text, y) {
  const wide = g.measureText(text).width;
  g.fillStyle = colour("panel");
  g.fillRect(0, y + 2, wide + PAD, LANE - 4);
  g.fillStyle = colour("quiet");
  g.fillText(text, 2, y + LANE / 2 + 0.5);
}

/** Times in which the page heard nothing, and places where something is missing. */
function breaks(g, scene) {
  const { view, width, height, now, colour } = scene;
  for (const { from, to, text } of scene.breaks) {
    const [x, end] = [xOf(view, width, from), xOf(view, width, to ?? now)];
    if (end < 0 || x > width) continue;
    const [left, right] = [Math.max(0, x), Math.min(width, Math.max(end, x + 2))];
    g.fillStyle = colour("bad");
    g.globalAlpha = 0.1;
    g.fillRect(left, AXIS, right - left, height - AXIS);
    g.globalAlpha = 0.6;
    g.fillRect(left, AXIS, 1, height - AXIS);
    g.globalAlpha = 1;
    note(g, drawn(text), left + 5, places(scene).bottom - 9, colour("bad"), colour("panel"));
  }
}

/** The time before which nothing is known, or nothing was. */
function unknown(g, { view, width, height, knownFrom, before, colour }) {
  const x = Math.min(width, xOf(view, width, knownFrom));
  if (!(x > 0)) return;
  g.fillStyle = colour("page");
  g.globalAlpha = 0.75;
  g.fillRect(0, AXIS, x, height - AXIS);
  g.globalAlpha = 1;
  g.font = SMALL;
  const words = drawn(before);
  const wide = g.measureText(words).width;
  if (wide + 16 < x) note(g, words, x - wide - 10, AXIS + 9, colour("quiet"), colour("page"));
  g.font = FONT;
}

function note(g, text, x, y, tone, ground) {
  g.font = SMALL;
  g.fillStyle = ground;
  g.fillRect(x - 3, y - 7, g.measureText(text).width + 6, 14);
  g.fillStyle = tone;
  g.fillText(text, x, y + 0.5);
  g.font = FONT;
}

function nowLine(g, { view, width, height, now, until, colour }) {
  const x = xOf(view, width, Math.min(now, until));
  if (x < 0 || x > width) return;
  g.fillStyle = colour("bad");
  g.fillRect(Math.round(x) - 1, AXIS - 6, 1.5, height - AXIS + 6);
  g.beginPath();
  g.moveTo(x - 5, AXIS - 7);
  g.lineTo(x + 5, AXIS - 7);
  g.lineTo(x, AXIS);
  g.fill();
}
