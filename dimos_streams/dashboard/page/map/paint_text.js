/** Texts on a map. */

import { drawn } from "../texts.js";

export const FONT = "11.5px system-ui, sans-serif";
export const BOLD = "600 12px system-ui, sans-serif";

/** Draw a text with a halo, so that it can be read on whatever is below it. */
export function write(context, text, x, y, { colour, colours, align = "left", font = FONT }) {
  context.font = font;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  context.strokeStyle = colours["map-halo"];
  const words = drawn(text);
  context.strokeText(words, x, y);
  context.fillStyle = colour;
  context.fillText(words, x, y);
}
