/** Which part of the floor a map shows. Free of the DOM. */

const NEAREST = 400;
const FARTHEST = 4;

/** The middle of the map in metres, and how many pixels a metre has. */
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

  /** Zoom, while the point at a pixel stays where it is. */
  zoom(factor, pixel = { x: this.width / 2, y: this.height / 2 }) {
    const kept = this.toFloor(pixel);
    this.scale = Math.max(FARTHEST, Math.min(NEAREST, this.scale * factor));
    const now = this.toFloor(pixel);
    this.x += kept.x - now.x;
    this.y += kept.y - now.y;
  }

  /** Move the floor under the glass by so many pixels. */
  pan(right, down) {
    this.x -= right / this.scale;
    this.y += down / this.scale;
  }

  /** Show all of some bounds. @param {{left: number, right: number, bottom: number, top: number}} bounds metres */
  fit({ left, right, bottom, top }, margin = 24) {
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2;
    const fits = Math.min((this.width - 2 * margin) / (right - left), (this.height - 2 * margin) / (top - bottom));
    this.scale = Math.max(FARTHEST, Math.min(NEAREST, fits || NEAREST));
  }

  /** What is seen, in metres. */
  get bounds() {
    const [wide, high] = [this.width / 2 / this.scale, this.height / 2 / this.scale];
    return { left: this.x - wide, right: this.x + wide, bottom: this.y - high, top: this.y + high };
  }
}
