/** Views that fit themselves to the robots and the area that they know. No DOM. */

import { inMap } from "./floor.js";
import { placed } from "./geometry.js";

/** Minimum side, in metres, of the area that is shown around each robot. */
const LEAST_M = 3;
/** Minimum change of the known area, in metres, for which the view is fitted again. */
const WORTH_M = 0.4;

/** Return the place of the chosen robot, or the middle of all. */
export function middleOfRobots({ robots }, chosenRobot) {
  const followed = robots.filter(({ name }) => chosenRobot === "" || name === chosenRobot);
  const at = followed.map((robot) => placed(inMap(robot), robot.pose));
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  return { x: middle(at.map(({ x }) => x)), y: middle(at.map(({ y }) => y)) };
}

/** Keeps a view fitted to the known area, and to a few metres at least, until somebody changes it by hand. */
export class Fitting {
  /** Whether the next `fit` looks for a change; otherwise it does so only if the map or its size is another. */
  isDue = true;
  #isOn = true;
  #view;
  #bounds = null;
  #fitted = "";

  /** @param {import("./view.js").View} view */
  constructor(view) {
    this.#view = view;
  }

  /** Fit the view again from now on. */
  begin() {
    this.#isOn = true;
    this.#bounds = null;
  }

  /** Leave the view as it is. */
  end() {
    this.#isOn = false;
  }

  /** Fit the view to a map, unless the known area has changed by little. @param {import("./floor.js").SharedMap} map */
  fit(map) {
    const { width, height } = this.#view;
    const isOther = this.#fitted !== `${map.key} ${width} ${height}`;
    if (!this.#isOn || (this.#bounds && !this.isDue && !isOther)) return;
    this.isDue = map.robots.every(({ occupancy }) => occupancy.tiles.size === 0); // the first scan is shown at once
    const bounds = knownOf(map);
    const isMoved = !this.#bounds || Object.keys(bounds).some((side) => Math.abs(bounds[side] - this.#bounds[side]) > WORTH_M);
    if (!isMoved && !isOther) return;
    [this.#bounds, this.#fitted] = [bounds, `${map.key} ${width} ${height}`];
    this.#view.fit(bounds);
  }
}

/** Return the bounds of what the robots know, with some room around each of them. */
function knownOf(map) {
  const corners = [];
  for (const robot of map.robots) {
    const stands = inMap(robot);
    const { x, y } = placed(stands, robot.pose);
    corners.push({ x: x - LEAST_M / 2, y: y - LEAST_M / 2 }, { x: x + LEAST_M / 2, y: y + LEAST_M / 2 });
    const known = robot.occupancy.known;
    if (!known) continue;
    for (const side of [known.left, known.right]) {
      for (const end of [known.bottom, known.top]) corners.push(placed(stands, { x: side, y: end }));
    }
  }
  const [xs, ys] = [corners.map((corner) => corner.x), corners.map((corner) => corner.y)];
  return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys) };
}
