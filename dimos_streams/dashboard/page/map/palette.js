/** The map's colours, taken from the page's styles. */

import { colour } from "../theme.js";

export const ROBOTS = 6;
/** Colours of clothes by their names in labels. */
const CLOTHES = {
  red: "#d93a32", green: "#2f9e54", blue: "#2f6fde", yellow: "#e3b505", orange: "#e8771f", purple: "#8a4fd0",
  pink: "#e56aa6", brown: "#8b5e3c", black: "#23272e", grey: "#8a929e", gray: "#8a929e", white: "#f4f5f7",
};
const CLOTHES_NAMES = new RegExp(`\\b(${Object.keys(CLOTHES).join("|")})\\b`, "i");

/** The palette that was made last; it stays the same object until a colour changes. */
let known = null;
export function palette() {
  const names = ["map-unknown", "map-free", "map-wall", "map-grid", "map-scan", "map-zone", "map-halo", "map-way",
    "text", "quiet", "panel", "accent", "bad", ...Array.from({ length: ROBOTS }, (_, index) => `robot-${index}`)];
  const colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
  const key = Object.values(colours).join();
  if (known?.key !== key) {
    known = { key, ...colours, free: bytesOf(colours["map-free"]), wall: bytesOf(colours["map-wall"]), hatch: hatched(colours["map-zone"]) };
  }
  return known;
}

/** Return the colour of a robot, by its place among all. */
export function robotColour(colours, place) {
  return colours[`robot-${place % ROBOTS}`];
}

/** Return the colour of a person's clothes by their label, null if it names none. */
export function clothesColour(label) {
  const found = CLOTHES_NAMES.exec(label);
  return found && CLOTHES[found[1].toLowerCase()];
}

/** Return a colour as bytes: `rgb(1, 2, 3)` → `[1, 2, 3]`. */
function bytesOf(text) {
  return text.match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** Return a canvas with stripes, of which patterns are made. */
function hatched(stroke) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [10, 10];
  const context = canvas.getContext("2d");
  context.strokeStyle = stroke;
  context.lineWidth = 2;
  context.beginPath();
  for (const left of [-10, 0, 10]) {
    context.moveTo(left - 1, 11);
    context.lineTo(left + 11, -1);
  }
  context.stroke();
  return canvas;
}
