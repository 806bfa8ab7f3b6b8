/** Draws the lanes of leases, below the rows. */

import { namespaceOf } from "../format.js";
import { drives } from "../reasons.js";
import { drawn } from "../texts.js";
import { FONT, LEGIBLE, PAD, shortened, SMALL } from "./draw_text.js";
import { extent, LANE, places } from "./places.js";
import { nameOf } from "./words.js";

export function lanes(g, scene) {
  const { layout, width, height, colour } = scene;
  const { lanesTop, lanes: seen } = places(scene);
  if (layout.lanes.length === 0) return;
  g.fillStyle = colour("panel");
  g.fillRect(0, lanesTop - 1, width, height - lanesTop + 1);
  g.fillStyle = colour("line");
  g.fillRect(0, lanesTop - 1, width, 1);
  g.font = SMALL;
  layout.lanes.slice(0, seen).forEach(({ resource, holds }, place) => {
    const y = lanesTop + place * LANE;
    const name = drawn(laneText(resource));
    const from = g.measureText(name).width + PAD;
    for (const hold of holds) {
      const part = extent(scene, hold.from, hold.to);
      if (!part || hold.from > scene.until) continue;
      g.fillStyle = colour("warn");
      g.globalAlpha = hold.call.id === scene.selected ? 0.5 : 0.26;
      g.fillRect(part.left, y + 2, part.right - part.left, LANE - 4);
      g.globalAlpha = 1;
      g.fillRect(part.left, y + 2, 1.5, LANE - 4);
      const left = Math.max(part.left, from);
      if (part.right - left < LEGIBLE / 2) continue;
      const text = drawn(nameOf(hold.call));
      const shown = shortened(g, text, part.right - left - 2 * PAD, g.measureText(text).width);
      g.fillStyle = colour("text");
      if (shown) g.fillText(shown, left + PAD, y + LANE / 2 + 0.5);
    }
    tag(g, scene, name, y);
  });
  g.font = FONT;
}

/** Return the label of a resource's lane, which the names of its calls complete: `robot1 driven by`. */
function laneText(resource) {
  const robot = namespaceOf(resource);
  return drives(resource) ? `${robot || "robot"} driven by` : `${resource} used by`;
}

/** Draw the label of a lane at its left edge, over what is there. */
function tag(g, { colour }, text, y) {
  const wide = g.measureText(text).width;
  g.fillStyle = colour("panel");
  g.fillRect(0, y + 2, wide + PAD, LANE - 4);
  g.fillStyle = colour("quiet");
  g.fillText(text, 2, y + LANE / 2 + 0.5);
}
