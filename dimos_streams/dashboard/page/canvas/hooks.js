/** Hooks for panels that do their own drawing. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { shown } from "../texts.js";
import { drawNot, drawSoon } from "../pace.js";
import { Surface } from "./surface.js";

/** Return a reference to the newest value, for effects and painters.
 * @template T @param {T} value @returns {{current: T}} */
export function useNewest(value) {
  const kept = useRef(value);
  kept.current = value;
  return kept;
}

/**
 * Return a canvas that is drawn on request.
 * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} paint
 * @returns {[import("preact").RefObject<HTMLCanvasElement>, import("preact").RefObject<Surface>]} for the element, and
 *   the surface while it is there
 */
export function useSurface(paint) {
  const canvas = useRef(null);
  const surface = useRef(null);
  const newest = useNewest(paint);
  useEffect(() => {
    const made = new Surface(canvas.current, (...given) => newest.current(...given));
    surface.current = made;
    return () => {
      surface.current = null;
      made.close();
    };
  }, []);
  return [canvas, surface];
}

/** Return whether an element is on the screen, or nearly. @returns {[import("preact").RefObject<Element>, boolean]} */
export function useVisible() {
  const element = useRef(null);
  const [isVisible, become] = useState(true);
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => become(seen.at(-1).isIntersecting), { rootMargin: "100px" });
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return [element, isVisible];
}

/** Return the newest list of live topics. @param {import("../link/live.js").Live} live */
export function useTopics(live) {
  const [topics, become] = useState(live.topics);
  useEffect(() => {
    become(live.topics);
    return live.onTopics((list) => become(list ?? live.topics));
  }, [live]);
  return topics;
}

/** Call the newest `tick` every so many ms, with what is drawn then, until the panel's elements are removed. */
export function useTick(milliseconds, tick) {
  const newest = useNewest(tick);
  useLayoutEffect(() => {
    const call = () => newest.current();
    const timer = setInterval(() => (document.hidden ? call() : drawSoon(call)), milliseconds);
    return () => {
      clearInterval(timer);
      drawNot(call);
    };
  }, [milliseconds]);
}

/** Write a text into an element if it differs from the present one, without rendering a view. */
export function write(element, text) {
  const words = shown(text);
  if (element && element.textContent !== words) element.textContent = words;
}

/** Set the label of an element for screen readers. */
export function name(element, text) {
  element?.setAttribute("aria-label", shown(text));
}
