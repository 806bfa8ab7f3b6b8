/**
 * One rhythm for all that is drawn. A frame costs the browser about the same however little of it has changed, so what can
 * wait a little waits for the rest.
 */

/** Minimum time from a frame to the next one, in ms, if all that the next one draws can wait. */
const LEAST_MS = 110;
/** Time, in ms, within which a robot's messages of one instant come; the last, pictures, are drawn as they come. */
const TOGETHER_MS = 25;

const due = new Set();
let frame = 0;
let timer = 0;
let last = -Infinity;

/** Call `draw` in the next frame, with all that waits to be drawn soon. */
export function drawNext(draw) {
  due.add(draw);
  request();
}

/** Call `draw` in the next frame that is drawn anyway, else in one of its own, at most nine times a second. */
export function drawSoon(draw) {
  due.add(draw);
  if (frame !== 0 || timer !== 0) return;
  timer = setTimeout(request, Math.max(TOGETHER_MS, last + LEAST_MS - performance.now()));
}

/** Do not call `draw` unless it is asked for again. */
export function drawNot(draw) {
  due.delete(draw);
}

function request() {
  frame ||= requestAnimationFrame(drawAll);
}

function drawAll() {
  clearTimeout(timer);
  [frame, timer, last] = [0, 0, performance.now()];
  const all = [...due];
  due.clear();
  for (const draw of all) {
    try {
      draw();
    } catch (error) {
      reportError(error); // the others are drawn all the same
    }
  }
}
