/** Canvases that are drawn in the browser's own rhythm, and only when something has changed. */

import { onTheme } from "../theme.js";
import { drawNext, drawNot, drawSoon } from "../pace.js";

const SHARPEST = 2;

/** Draws on a canvas that fills its parent, in CSS pixels. */
export class Surface {
  width = 0;
  height = 0;
  #canvas;
  #place;
  #paint;
  #context;
  #size;
  #drawn = null;
  #endTheme;

  /**
   * @param {HTMLCanvasElement} canvas its parent gives it its size
   * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} paint on a canvas that is clear
   */
  constructor(canvas, paint) {
    this.#canvas = canvas;
    this.#place = canvas.parentElement;
    this.#paint = paint;
    this.#context = canvas.getContext("2d");
    this.#size = new ResizeObserver(() => this.#measure());
    this.#size.observe(this.#place);
    this.#endTheme = onTheme(() => this.request());
    this.#measure();
  }

  /** Draw in the very next frame. @returns {Promise<void>} done when it is drawn, or never will be */
  request() {
    drawNext(this.#draw);
    this.#drawn ??= Promise.withResolvers();
    return this.#drawn.promise;
  }

  /** Draw soon, together with other canvases. @returns {Promise<void>} as above */
  refresh() {
    drawSoon(this.#draw);
    this.#drawn ??= Promise.withResolvers();
    return this.#drawn.promise;
  }

  /** Draw no more. */
  close() {
    this.#size.disconnect();
    this.#endTheme();
    drawNot(this.#draw);
    this.#settle();
  }

  #measure() {
    this.width = this.#place.clientWidth;
    this.height = this.#place.clientHeight;
    this.request();
  }

  #draw = () => {
    const sharp = Math.min(SHARPEST, devicePixelRatio || 1);
    const [width, height] = [Math.round(this.width * sharp), Math.round(this.height * sharp)];
    if (width > 0 && height > 0) {
      if (this.#canvas.width !== width) this.#canvas.width = width;
      if (this.#canvas.height !== height) this.#canvas.height = height;
      this.#context.setTransform(1, 0, 0, 1, 0, 0);
      this.#context.clearRect(0, 0, width, height);
      this.#context.setTransform(sharp, 0, 0, sharp, 0, 0);
      this.#painted();
    }
    this.#settle();
  };

  /** Paint. An error costs this frame, but does not block those who wait for it. */
  #painted() {
    this.#context.save();
    try {
      this.#paint(this.#context, this.width, this.height);
    } catch (error) {
      reportError(error);
    }
    this.#context.restore();
  }

  #settle() {
    this.#drawn?.resolve();
    this.#drawn = null;
  }
}
