/** Gestures on a map, with wheel, mouse, fingers and keys. */

const CLICK_PX = 6;
const WHEEL = 0.0016;
const KEY_ZOOM = 1.3;
const KEY_PX = 48;

/**
 * Watch an element for gestures.
 * @param {{
 *   pan: (right: number, down: number) => void, zoom: (factor: number, pixel?: {x: number, y: number}) => void,
 *   pick: (pixel: {x: number, y: number}) => void, hover: (pixel: {x: number, y: number}|null) => void,
 *   key: (name: string) => boolean,
 * }} does pixels are from the element's upper left corner; `pan` and `zoom` come from people, not from the program
 * @returns {() => void} ends it
 */
export function watchGestures(element, does) {
  const pointers = new Map();
  let moved = 0;
  const pixel = ({ clientX, clientY }) => {
    const { left, top } = element.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };
  const handlers = {
    pointerdown(event) {
      if (event.button !== 0) return;
      if (pointers.size === 0) moved = 0;
      pointers.set(event.pointerId, pixel(event));
      element.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      const now = pixel(event);
      if (event.pointerType === "mouse") does.hover(now);
      const before = pointers.get(event.pointerId);
      if (!before) return;
      moved += Math.hypot(now.x - before.x, now.y - before.y);
      if (moved < CLICK_PX) return;
      element.classList.add("dragged");
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, now);
      if (other) pinch(before, now, other);
      else does.pan(now.x - before.x, now.y - before.y);
    },
    pointerup(event) {
      const isClick = pointers.size === 1 && pointers.has(event.pointerId) && moved < CLICK_PX;
      leave(event);
      if (isClick) does.pick(pixel(event));
    },
    pointercancel: leave,
    pointerleave: () => does.hover(null),
    wheel(event) {
      event.preventDefault();
      does.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 30 : 1) * WHEEL * (event.ctrlKey ? 5 : 1)), pixel(event));
    },
    keydown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || !onKey(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    },
  };

  function pinch(before, now, other) {
    const [was, is] = [before, now].map(({ x, y }) => Math.hypot(x - other.x, y - other.y));
    does.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    if (was > 0 && is > 0) does.zoom(is / was, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
  }

  function leave(event) {
    pointers.delete(event.pointerId);
    if (pointers.size === 0) element.classList.remove("dragged");
  }

  function onKey(key) {
    const pans = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (key in pans) does.pan(pans[key][0] * KEY_PX, pans[key][1] * KEY_PX);
    else if (key === "+" || key === "=") does.zoom(KEY_ZOOM);
    else if (key === "-") does.zoom(1 / KEY_ZOOM);
    else return does.key(key);
    return true;
  }

  const ends = new AbortController();
  const options = { passive: false, signal: ends.signal };
  for (const [name, handler] of Object.entries(handlers)) element.addEventListener(name, handler, options);
  return () => ends.abort();
}
