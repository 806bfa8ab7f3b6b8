/** The part of the floor that a map shows. No DOM. */

const NEAREST = 400;
const FARTHEST = 4;

/** A view of the floor: its middle in metres, its scale in pixels per metre, and its size in pixels. */
export class View {
  x = 0;
  y = 0;
  scale = 50;
  width = 1;
  height = 1;

  /** @param {import("./geometry.js").Point} point metres @returns pixels from the upper left corner */
  toScreen({ x, y }) {
    return { x: this.width / 2 + (x - this.x) * this.scale, y: this.height / 2 - (y - this.y) * this.scale };
  }

  /** @param {{x: number, y: number}} pixel @returns {import("./geometry.js").Point} metres */
  toFloor({ x, y }) {
    return { x: this.x + (x - this.width / 2) / this.scale, y: this.y - (y - this.height / 2) / this.scale };
  }

  /** Zoom around a pixel: the point there stays in place. */
  zoom(factor, pixel = { x: this.width / 2, y: this.height / 2 }) {
    const kept = this.toFloor(pixel);
    this.scale = Math.max(FARTHEST, Math.min(NEAREST, this.scale * factor));
    const now = this.toFloor(pixel);
    this.x += kept.x - now.x;
    this.y += kept.y - now.y;
  }

  /** Move the floor by a distance in pixels. */
  pan(right, down) {
    this.x -= right / this.scale;
    this.y += down / this.scale;
  }

  /** Fit the view to bounds. @param {{left: number, right: number, bottom: number, top: number}} bounds metres */
  fit({ left, right, bottom, top }, margin = 24) {
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2;
    const fits = Math.min((this.width - 2 * margin) / (right - left), (this.height - 2 * margin) / (top - bottom));
    this.scale = Math.max(FARTHEST, Math.min(NEAREST, fits || NEAREST));
  }

  /** The bounds of the view, in metres. */
  get bounds() {
    const [wide, high] = [this.width / 2 / this.scale, this.height / 2 / this.scale];
    return { left: this.x - wide, right: this.x + wide, bottom: this.y - high, top: this.y + high };
  }
}
