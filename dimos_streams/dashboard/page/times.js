/** Times and ages, as elements. */

import { useEffect, useRef, useState } from "preact/hooks";
import { drawSoon } from "./pace.js";
import { html } from "./html.js";
import { agoText, clockText, dateOf, dayText } from "./format.js";

/** @param {{utime: number}} given µs since the Unix epoch, of the robot's clock */
export function Time({ utime }) {
  const date = dateOf(utime);
  return html`<time datetime=${date.toISOString()} title=${dayText(date)}>${clockText(date)}</time>`;
}

/** The age of something; it is updated every second. @param {{utime: number, now: () => number}} given */
export function Ago({ utime, now, text = agoText }) {
  const date = dateOf(utime);
  const words = useSecond(() => text((now() - utime) / 1e6));
  return html`<time datetime=${date.toISOString()} title=${dayText(date)}>${words}</time>`;
}

const seconds = new Set();
const tickAll = () => seconds.forEach((tick) => tick());
setInterval(() => document.hidden || drawSoon(tickAll), 1000);

/** Return what `look` gives. Once a second, while the tab is visible, the view is rendered again if that changes. */
export function useSecond(look = () => performance.now()) {
  const [, show] = useState(0);
  const shown = useRef(null);
  const newest = useRef(look);
  newest.current = look;
  shown.current = look();
  useEffect(() => {
    const tick = () => newest.current() !== shown.current && show((count) => count + 1);
    seconds.add(tick);
    return () => seconds.delete(tick);
  }, []);
  return shown.current;
}
