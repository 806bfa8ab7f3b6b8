/** The occupancy grid that is built from scans. No DOM. */

export const CELL_M = 0.05;
export const TILE_CELLS = 64;
export const TILE_M = CELL_M * TILE_CELLS;
/** Maximum number of tiles, enough for 40 m × 40 m; of more, those that were seen longest ago are dropped. */
const MAX_TILES = 160;
const HIT = 20;
const MISS = -5;
const MOST = 100;
/** The length of a ray that hit nothing, in metres: the floor is free that far. */
const FREE_M = 5;
/** Maximum length of a ray, in metres: what it hit farther away is not entered, and the floor is free up to here. */
const SEEN_M = 40;
/** Maximum number of rays of a scan that are used; of more, an even selection is. */
const MAX_RAYS = 1440;
/** Maximum difference in length, in metres, between neighbouring rays that end on the same thing. */
const ALIKE_M = 0.3;
const HALF = 1 << 15;

/**
 * A square of the floor.
 * @typedef {{column: number, row: number, cells: Int8Array, looked: Uint16Array, version: number, used: number}} Tile
 * `cells` has, row by row from the least y, how sure it is that there is something: -100 (free) to 100, 0 if unknown.
 */

/** A sparse grid. A cell is the sum of what scans have said of it, within bounds, so that what moves is forgotten. */
export class Occupancy {
  /** @type {Map<number, Tile>} */
  tiles = new Map();
  #scan = 0;
  #last = null;

  /**
   * Take a scan.
   * @param {import("./geometry.js").Pose} pose of the range finder in the grid's frame
   * @param {{angle_min: number, angle_increment: number, range_min: number, range_max: number}} scan
   */
  add(pose, scan, ranges) {
    this.#scan = (this.#scan % 0xffff) + 1;
    const rays = raysOf(scan, ranges);
    const at = { column: cellOf(pose.x), row: cellOf(pose.y) };
    const places = [...rays, ...raysBetween(rays, scan.angle_increment * strideOf(ranges))].map(short).map(({ angle, length, isHit }) => ({
      column: cellOf(pose.x + length * Math.cos(pose.yaw + angle)),
      row: cellOf(pose.y + length * Math.sin(pose.yaw + angle)),
      isHit,
    }));
    // Hits go first, and a scan judges each cell once: otherwise rays that graze a wall would wear it away.
    for (const { column, row, isHit } of places) if (isHit) this.#judge(column, row, HIT);
    for (const end of places) this.#clear(at, end);
    this.#forget();
  }

  /** Return how sure it is that there is something at a point: -100 (free) to 100, 0 if unknown. */
  at({ x, y }) {
    const [column, row] = [cellOf(x), cellOf(y)];
    const tile = this.tiles.get(keyOf(column >> 6, row >> 6));
    return tile ? tile.cells[placeOf(column, row)] : 0;
  }

  /** The bounds of what scans have hit, in metres; null if they have hit nothing. */
  get known() {
    const bounds = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
    for (const { column, row, cells } of this.tiles.values()) {
      for (let place = 0; place < cells.length; place += 1) {
        if (cells[place] <= 0) continue;
        const x = (column * TILE_CELLS + (place & 63)) * CELL_M;
        const y = (row * TILE_CELLS + (place >> 6)) * CELL_M;
        if (x < bounds.left) bounds.left = x;
        if (x + CELL_M > bounds.right) bounds.right = x + CELL_M;
        if (y < bounds.bottom) bounds.bottom = y;
        if (y + CELL_M > bounds.top) bounds.top = y + CELL_M;
      }
    }
    return bounds.left < bounds.right ? bounds : null;
  }

  /** Mark the cells from the robot to the end of a ray as free (Bresenham's line, without its end). */
  #clear(from, to) {
    let { column, row } = from;
    const [wide, high] = [Math.abs(to.column - column), -Math.abs(to.row - row)];
    const [right, up] = [column < to.column ? 1 : -1, row < to.row ? 1 : -1];
    let error = wide + high;
    while (column !== to.column || row !== to.row) {
      this.#judge(column, row, MISS);
      const twice = 2 * error;
      if (twice >= high) [error, column] = [error + high, column + right];
      if (twice <= wide) [error, row] = [error + wide, row + up];
    }
  }

  #judge(column, row, change) {
    const tile = this.#tile(column >> 6, row >> 6);
    const place = placeOf(column, row);
    if (tile.looked[place] === this.#scan) return;
    tile.looked[place] = this.#scan;
    const before = tile.cells[place];
    const now = Math.max(-MOST, Math.min(MOST, before + change));
    if (now === before) return;
    tile.cells[place] = now;
    tile.version += 1;
  }

  #tile(column, row) {
    const last = this.#last;
    if (last && last.column === column && last.row === row) return last;
    const key = keyOf(column, row);
    let tile = this.tiles.get(key);
    if (!tile) {
      const size = TILE_CELLS * TILE_CELLS;
      tile = { column, row, cells: new Int8Array(size), looked: new Uint16Array(size), version: 1, used: 0 };
    }
    // The tile that was used last is the last one of the map.
    if (tile.used !== this.#scan) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
      tile.used = this.#scan;
    }
    this.#last = tile;
    return tile;
  }

  #forget() {
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= MAX_TILES) break;
      this.tiles.delete(key);
    }
    this.#last = null;
  }
}

/**
 * Return the rays of a scan that carry information.
 * @returns {{angle: number, length: number, isHit: boolean}[]} from the range finder, metres and radians
 */
export function raysOf(scan, ranges) {
  const rays = [];
  const free = Math.min(FREE_M, scan.range_max);
  for (let index = 0; index < ranges.length; index += strideOf(ranges)) {
    const range = ranges[index];
    if (Number.isNaN(range) || range < scan.range_min || range <= 0) continue;
    const isHit = range <= scan.range_max && Number.isFinite(range);
    if (isHit || free > 0) {
      rays.push({ angle: scan.angle_min + index * scan.angle_increment, length: isHit ? range : free, isHit });
    }
  }
  return rays;
}

/** Return the step between the rays of a scan that are used. */
function strideOf(ranges) {
  return Math.ceil(ranges.length / MAX_RAYS);
}

function short(ray) {
  return ray.length > SEEN_M ? { ...ray, length: SEEN_M, isHit: false } : ray;
}

/** Return free rays between neighbours that end alike: far away, rays are wider apart than cells. */
function raysBetween(rays, step) {
  const between = [];
  for (let index = 1; index < rays.length; index += 1) {
    const [one, other] = [rays[index - 1], rays[index]];
    const isNext = Math.abs(other.angle - one.angle) < 1.5 * Math.abs(step);
    if (!isNext || Math.abs(one.length - other.length) > ALIKE_M) continue;
    between.push({ angle: (one.angle + other.angle) / 2, length: Math.min(one.length, other.length) - CELL_M, isHit: false });
  }
  return between.filter(({ length }) => length > 0);
}

function cellOf(metres) {
  return Math.floor(metres / CELL_M);
}

function keyOf(column, row) {
  return (column + HALF) * 2 * HALF + row + HALF;
}

function placeOf(column, row) {
  return (row & 63) * TILE_CELLS + (column & 63);
}
