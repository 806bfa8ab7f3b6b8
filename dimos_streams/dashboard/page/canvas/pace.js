/**
 * One rhythm for all canvases. A frame costs the browser about the same however little of it has changed, so whoever has
 * something to draw does so together, and what can wait a little waits for the others.
 */

/** Between two frames in which nothing is drawn that could not wait. */
const LEAST_MS = 110;
/** What a robot measures at one time comes within this: its pictures take longest, and are drawn when they are there. */
const TOGETHER_MS = 25;

const due = new Set();
let frame = 0;
let timer = 0;
let last = -Infinity;

/** Call `draw` in the next frame, with all that was to be drawn soon. */
export function drawNext(draw) {
  due.add(draw);
  request();
}

/** Call `draw` with the next that is drawn; by itself nine times a second at most. */
export function drawSoon(draw) {
  due.add(draw);
  if (frame !== 0 || timer !== 0) return;
  timer = setTimeout(request, Math.max(TOGETHER_MS, last + LEAST_MS - performance.now()));
}

/** Don't call `draw`, unless it is asked for again. */
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
      reportError(error); // the others are drawn
    }
  }
}
