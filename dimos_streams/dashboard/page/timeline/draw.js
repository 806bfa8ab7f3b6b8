/** Draws the calls in view on a canvas. Nothing here depends on the page. */

import { isIn } from "../format.js";
import { drawn } from "../texts.js";
import { bars, familyOf } from "./draw_bars.js";
import { lanes } from "./draw_lanes.js";
import { FONT, note, PAD, SMALL } from "./draw_text.js";
import { AXIS, places, ROW } from "./places.js";
import { marks, xOf } from "./scale.js";

/** @param {CanvasRenderingContext2D} g @param {import("./places.js").Scene} scene */
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

/** Draw the names of robots, if there are several. */
function sections(g, scene) {
  const { layout, width, colour, scroll } = scene;
  if (layout.sections.length < 2) return;
  const { top, bottom } = places(scene);
  for (const { name, row } of layout.sections) {
    const y = top + row * ROW - scroll;
    if (y < top - 2 || y + ROW > bottom) continue;
    g.fillStyle = colour("raised");
    g.fillRect(0, y, width, ROW - 4);
    g.font = `600 ${SMALL}`;
    g.fillStyle = colour("quiet");
    const title = drawn(name) || "no namespace";
    g.fillText(title, PAD, y + ROW / 2 - 1);
    const from = PAD + g.measureText(title).width + PAD;
    for (const band of scene.bands) if (isOf(band, name)) bandText(g, scene, band, y + ROW / 2 - 1, from);
  }
  g.font = FONT;
}

/** Draw the times in which robots were kept still, over the rows of these robots. */
function bands(g, scene) {
  const { layout, view, width, now, colour } = scene;
  const below = layout.sections.length > 1 ? 0 : ROW; // robots that are named have the text beside their names
  for (const band of scene.bands) {
    const [x, end] = [xOf(view, width, band.from), xOf(view, width, band.to ?? now)];
    if (end < 0 || x > width) continue;
    for (const { row, rows } of layout.sections.filter(({ name }) => isOf(band, name))) {
      const [left, y] = [Math.max(0, x), row * ROW];
      g.fillStyle = colour(band.tone);
      g.globalAlpha = 0.13;
      g.fillRect(left, y, Math.min(width, end) - left, rows * ROW + below);
      g.globalAlpha = 1;
      if (below > 0) bandText(g, scene, band, y + rows * ROW + ROW / 2);
    }
  }
}

function isOf({ robot, released }, name) {
  return (robot === null || robot === name || (robot !== "" && isIn(name, robot))) && !released?.some((other) => isIn(name, other));
}

/** Write the text of a band where it has room, from an x on. */
function bandText(g, { view, width, now, colour }, { from, to, text: said, tone }, y, least = 0) {
  const text = drawn(said);
  const left = Math.max(least, xOf(view, width, from));
  const right = Math.min(width, xOf(view, width, to ?? now));
  g.font = `600 ${SMALL}`;
  g.fillStyle = colour(tone);
  if (g.measureText(text).width + PAD < right - left) g.fillText(text, left + 4, y);
  g.font = FONT;
}

/** Draw the times in which the page heard nothing, and those at which something is missing. */
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

/** Draw the time in which no call is known, or none was, with the text about it. */
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
