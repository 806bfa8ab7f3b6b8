/** Grids of the floor as small canvases; only those whose cells have changed are made again. */

import { TILE_CELLS, TILE_M } from "./occupancy.js";

/** Minimum time between two pictures of a tile, in ms. */
const LEAST_MS = 250;
/** Maximum number of cells of a module's grid; a larger one is not drawn. */
const MAX_CELLS = 4_000_000;
/** Maximum width and height of a canvas in every browser, in pixels. */
const MAX_SIDE = 8192;

/** The pictures of tiles and grids. */
export class Tiles {
  /** @type {WeakMap<object, {canvas: HTMLCanvasElement, version: number, colours: object, at: number}>} */
  #made = new WeakMap();

  /** Draw a robot's grid; the context's unit is the pixel, y down, and its origin that of the grid. */
  drawOccupancy(context, occupancy, scale, colours) {
    const size = TILE_M * scale;
    for (const tile of occupancy.tiles.values()) {
      const picture = this.#picture(tile, tile.version, colours, () => pictureOf(TILE_CELLS, TILE_CELLS, tile.cells, colours, 1));
      // Whole pixels, so that no seams are seen.
      const [left, right] = [tile.column, tile.column + 1].map((column) => Math.round(column * size));
      const [top, bottom] = [tile.row + 1, tile.row].map((row) => Math.round(-row * size));
      context.drawImage(picture, left, top, right - left, bottom - top);
    }
  }

  /** Draw a module's grid: its cells are 0 (free) to 100, or -1 if unknown. */
  drawGrid(context, grid, scale, colours) {
    const { width, height, cells } = grid;
    if (cells.length > MAX_CELLS || width * height !== cells.length || width < 1 || Math.max(width, height) > MAX_SIDE) return;
    const picture = this.#picture(grid, 1, colours, () => pictureOf(grid.width, grid.height, grid.cells.map(sureness), colours, 1));
    const { x, y, yaw = 0 } = grid.origin;
    context.save();
    context.translate(x * scale, -y * scale);
    context.rotate(-yaw);
    const [wide, high] = [grid.width * grid.resolution * scale, grid.height * grid.resolution * scale];
    context.drawImage(picture, 0, -high, wide, high);
    context.restore();
  }

  #picture(key, version, colours, make) {
    const known = this.#made.get(key);
    const isNew = known?.version === version || performance.now() - known?.at < LEAST_MS;
    if (isNew && known.colours === colours) return known.canvas;
    const canvas = make();
    this.#made.set(key, { canvas, version, colours, at: performance.now() });
    return canvas;
  }
}

function sureness(cell) {
  return cell < 0 ? 0 : 2 * cell - 100;
}

/** Return a picture of cells that are given row by row from the least y, which is at the picture's bottom. */
function pictureOf(width, height, cells, { free, wall }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      const sure = cells[row * width + column];
      if (sure === 0) continue;
      const at = 4 * ((height - 1 - row) * width + column);
      const colour = sure > 0 ? wall : free;
      image.data[at] = colour[0];
      image.data[at + 1] = colour[1];
      image.data[at + 2] = colour[2];
      image.data[at + 3] = sure > 0 ? Math.min(255, 40 + sure * 5) : Math.min(255, -sure * 20);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}