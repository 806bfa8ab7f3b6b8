/** Texts on the timeline's canvas. */

import { beginning } from "../texts.js";

export const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
export const SMALL = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
export const PAD = 6;
/** The minimum room, in pixels, for a text that is to be legible. */
export const LEGIBLE = 90;

const widths = new Map();
const MAX_WIDTHS = 2000;

/** Return the width of a text in the font of bars, in pixels. */
export function widthOf(g, text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size >= MAX_WIDTHS) widths.clear();
    width = g.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

export function shortened(g, text, room, wide) {
  if (wide <= room) return text;
  const letters = Math.floor((text.length * room) / wide) - 1;
  return letters >= 3 ? `${beginning(text, letters)}…` : "";
}

export function note(g, text, x, y, tone, ground) {
  g.font = SMALL;
  g.fillStyle = ground;
  g.fillRect(x - 3, y - 7, g.measureText(text).width + 6, 14);
  g.fillStyle = tone;
  g.fillText(text, x, y + 0.5);
  g.font = FONT;
}
