/** The canvas of the timeline, with mouse, touch and wheel. It is drawn after changes, and as time goes on. */

import { drawNext, drawNot, drawSoon } from "../pace.js";
import { colour, onTheme } from "../theme.js";
import { draw } from "./draw.js";
import { callAt, scrollableBy } from "./places.js";
import { spanOf, timeAt } from "./scale.js";
import { showTip } from "./tip.js";

const CLICK_PX = 4;
const QUICKEST_MS = 250;
const SLOWEST_MS = 1000;
/** Maximum fraction of time for drawing what the user has not asked for. */
const SHARE = 0.08;

export class TimelineCanvas {
  #board;
  #session;
  #canvas;
  #tip;
  #size = { width: 0, height: 0 };
  #timer = 0;
  #isSeen = true;
  #drag = null;
  #undo = [];
  #notBefore = 0;
  #later = 0;
  /** The number of times that it was drawn. */
  drawn = 0;

  /** @param {import("./board.js").Board} board @param {HTMLElement} element takes the mouse
   * @param {HTMLCanvasElement} canvas @param {HTMLElement} tip */
  constructor(board, session, element, canvas, tip) {
    [this.#board, this.#session, this.#canvas, this.#tip] = [board, session, canvas, tip];
    const on = (target, name, act, options) => {
      target.addEventListener(name, act, options);
      this.#undo.push(() => target.removeEventListener(name, act, options));
    };
    on(element, "pointerdown", (event) => this.#down(event));
    on(element, "pointermove", (event) => this.#moved(event));
    on(element, "pointerup", (event) => this.#up(event));
    on(element, "pointercancel", () => (this.#drag = null));
    on(element, "pointerleave", () => this.#hover(null));
    on(element, "dblclick", (event) => this.#doubled(event));
    on(element, "wheel", (event) => this.#wheeled(event), { passive: false });
    on(document, "visibilitychange", () => this.changed());
    const resized = new ResizeObserver(() => this.#resized(element));
    resized.observe(element);
    const seen = new IntersectionObserver((entries) => this.#become(entries.at(-1).isIntersecting));
    seen.observe(element);
    this.#undo.push(() => resized.disconnect(), () => seen.disconnect(), onTheme(() => this.changed()), board.listen(() => this.#heard()));
    this.#resized(element);
  }

  stop() {
    for (const undo of this.#undo) undo();
    drawNot(this.#draw);
    clearTimeout(this.#timer);
    clearTimeout(this.#later);
  }

  /** Draw in the very next frame. */
  changed() {
    if (this.#isShown) drawNext(this.#draw);
  }

  /** Draw soon, together with other canvases. */
  #wentOn() {
    if (this.#isShown) drawSoon(this.#draw);
  }

  get #isShown() {
    return this.#isSeen && !document.hidden;
  }

  /** Draw after a change, but not too often: a busy run must not make the page slow. */
  #heard() {
    const pause = this.#notBefore - performance.now();
    if (this.#drag) this.changed();
    else if (pause <= 0) this.#wentOn();
    else this.#later ||= setTimeout(() => {
      this.#later = 0;
      this.#wentOn();
    }, pause);
  }

  #become(isSeen) {
    this.#isSeen = isSeen;
    this.changed();
  }

  #resized(element) {
    const { width, height } = element.getBoundingClientRect();
    this.#size = { width: Math.floor(width), height: Math.floor(height) };
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = this.#size.width * scale;
    this.#canvas.height = this.#size.height * scale;
    this.#canvas.style.width = `${this.#size.width}px`;
    this.#canvas.style.height = `${this.#size.height}px`;
    this.changed();
  }

  /** @returns {import("./places.js").Scene} */
  #scene() {
    const board = this.#board;
    return {
      layout: board.layout, view: board.view, ...this.#size, scroll: board.scroll, now: board.now, until: board.until,
      selected: this.#session.selected, cursor: board.cursor, hovered: board.hovered, breaks: board.log.breaks, bands: board.bands,
      knownFrom: board.knownFrom, before: board.before, colour,
    };
  }

  #draw = () => {
    const began = performance.now();
    if (this.#size.width < 1 || this.#size.height < 1) return;
    this.#board.lookBack();
    this.#board.scroll = Math.min(this.#board.scroll, scrollableBy(this.#scene()));
    const scene = this.#scene();
    const g = this.#canvas.getContext("2d");
    const scale = window.devicePixelRatio || 1;
    g.setTransform(scale, 0, 0, scale, 0, 0);
    draw(g, scene);
    this.drawn += 1;
    const now = performance.now();
    this.#notBefore = now + (now - began) / SHARE;
    this.#goOn(scene, this.#notBefore - now);
  };

  /** Draw again when the time has gone on by a pixel. */
  #goOn({ view, width }, least) {
    clearTimeout(this.#timer);
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pixel = isCalm ? SLOWEST_MS : Math.max(QUICKEST_MS, spanOf(view) / 1e3 / Math.max(1, width));
    this.#timer = setTimeout(() => this.#wentOn(), Math.max(Math.min(SLOWEST_MS, pixel), least));
  }

  #down(event) {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    this.#drag = { x: event.offsetX, y: event.offsetY, far: false };
  }

  #moved(event) {
    const drag = this.#drag;
    if (!drag) {
      this.#hover(event);
      return;
    }
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    drag.far ||= Math.hypot(dx, dy) > CLICK_PX;
    if (!drag.far) return;
    this.#hover(null);
    if (dx) this.#board.pan(-dx / this.#size.width);
    this.#scrollBy(-dy);
    [drag.x, drag.y] = [event.offsetX, event.offsetY];
  }

  #up(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (!drag || drag.far) return;
    const call = this.#callAt(event);
    this.#board.cursor = call?.id ?? null;
    this.#session.toggle(call?.id ?? null);
    this.changed();
  }

  #doubled(event) {
    const call = this.#callAt(event);
    if (call) this.#board.show(call.begin, call.end ?? this.#board.now);
  }

  #wheeled(event) {
    const isAcross = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const { width } = this.#size;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.#board.zoom(Math.exp(event.deltaY / 300), timeAt(this.#board.view, width, event.offsetX));
    } else if (isAcross) {
      event.preventDefault();
      this.#board.pan((event.deltaX || event.deltaY) / width);
    } else if (this.#scrollBy(event.deltaY)) event.preventDefault();
  }

  /** @returns {boolean} whether there was anything to move */
  #scrollBy(pixels) {
    const before = this.#board.scroll;
    this.#board.scroll = Math.min(Math.max(0, before + pixels), scrollableBy(this.#scene()));
    this.changed();
    return this.#board.scroll !== before;
  }

  /** Mark the call under the mouse, and show a tooltip about it. */
  #hover(event) {
    const call = event && this.#callAt(event);
    const id = call?.id ?? null;
    if (id !== this.#board.hovered) {
      this.#board.hovered = id;
      this.changed();
    }
    this.#tip.hidden = !call;
    if (call) showTip(this.#tip, this.#scene(), call, event);
  }

  #callAt({ offsetX, offsetY }) {
    return callAt(this.#scene(), offsetX, offsetY);
  }
}
