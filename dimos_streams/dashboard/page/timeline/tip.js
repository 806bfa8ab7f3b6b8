/** The tooltip of the timeline: a call, its state and its update nearest to the mouse. */

import { lookOf } from "../calls/outcomes.js";
import { clockText, dateOf } from "../format.js";
import { shown } from "../texts.js";
import { NEAR_PX } from "./places.js";
import { xOf } from "./scale.js";
import { askedFor, plain, took } from "./words.js";

/** Write about a call into the tooltip, which is not hidden, and place it beside the mouse, within the canvas. */
export function showTip(tip, scene, call, event) {
  tip.replaceChildren(...tipLines(scene, call, event.offsetX).map(([kind, text]) => {
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = shown(text);
    return line;
  }));
  const { width, height } = scene;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, width - box.width))}px`;
  const below = event.offsetY + 16;
  tip.style.top = `${Math.max(0, below + box.height > height ? event.offsetY - box.height - 10 : below)}px`;
}

/** Return the lines of the tooltip, each with its kind. */
function tipLines({ view, width, now }, call, x) {
  const near = call.ticks
    .map((tick) => ({ tick, apart: Math.abs(xOf(view, width, tick.utime) - x) }))
    .reduce((best, each) => (each.apart <= NEAR_PX * 2 && (!best || each.apart < best.apart) ? each : best), null);
  const said = near ? `${clockText(dateOf(near.tick.utime))} ${plain(call, near.tick.text)}` : plain(call, call.text);
  return [["what", askedFor(call)], ["quiet", `${lookOf(call.state).word} ${took(call, now)} · asked by ${call.caller}`],
    ...(said ? [["", said]] : [])];
}
