/** The state of a map panel that lasts from one drawing to the next, and how it is drawn. */

import { followedBy } from "../canvas/followed.js";
import { namespaceOf } from "../format.js";
import { Fitting, middleOfRobots } from "./fitting.js";
import { Floor } from "./floor.js";
import { metresText } from "./geometry.js";
import { isStopped } from "./go_to.js";
import { drawMap } from "./paint.js";
import { palette } from "./palette.js";
import { sceneOf } from "./scene.js";
import { Tiles } from "./tiles.js";
import { View } from "./view.js";

export class MapModel {
  floor = new Floor();
  view = new View();
  fitting = new Fitting(this.view);
  /** Whether somebody moves the map by keys, and is shown the point that Enter would ask for. */
  isFocused = false;
  /** The maps as of the last `mapFor`. @type {import("./floor.js").SharedMap[]} */
  maps = [];
  #tiles = new Tiles();

  /** Return the map that is shown: the one that was chosen by its key, or that of the chosen robot. */
  mapFor(robot, choice) {
    this.maps = this.floor.maps;
    const withRobot = this.maps.filter(({ robots }) => robot === "" || robots.some(({ name }) => name === robot));
    return withRobot.find(({ key }) => key === choice) ?? withRobot[0] ?? null;
  }

  /** Which robots are on which maps, as a text that differs when that has changed. */
  get population() {
    return this.maps.map(({ key, robots }) => [key, ...robots.map(({ name }) => name)].join(",")).join(";");
  }

  /** Return the coordinates at a pixel as text, in the map's frame. */
  coordinatesAt(pixel) {
    const { x, y } = this.view.toFloor(pixel);
    return `x ${metresText(x)} m · y ${metresText(y)} m`;
  }

  /** @returns {import("./floor.js").SharedMap|null} the map that was drawn */
  draw(context2d, width, height, session, { choice, follows, point }) {
    const { view } = this;
    [view.width, view.height] = [width, height];
    const map = this.mapFor(session.robot, choice);
    if (map && follows) {
      const middle = middleOfRobots(map, session.robot);
      [view.x, view.y] = [middle.x, middle.y];
    } else if (map) {
      this.fitting.fit(map);
    }
    drawMap(context2d, {
      view, colours: palette(), tiles: this.#tiles, robots: map ? drawnRobots(map, session) : [], now: session.now(), pin: point,
      hasCross: this.isFocused && point === null,
    });
    return map;
  }
}

/** Return the names of robots in the order of their colours. */
export function namesOf(state) {
  return Object.keys(state?.robots ?? {}).sort();
}

/** Return the robots of a map with what is drawn of each. */
function drawnRobots(map, session) {
  const { state } = session;
  const names = namesOf(state);
  return map.robots.map((robot) => ({
    robot, place: Math.max(0, names.indexOf(robot.name)), name: map.robots.length > 1 ? robot.name : "",
    followed: new Set(followedBy(state, robot.name).map(({ track }) => track)),
    isStopped: isStopped(state, robot.name), scene: sceneOf(state, robot.name), goals: goalsOf(session, robot.name),
  }));
}

/** Return the goals of a robot's calls that are open or selected. */
function goalsOf({ state, run, selected }, robot) {
  const calls = (state?.calls ?? []).filter((call) => namespaceOf(call.module) === robot);
  const looked = selected === null ? null : run.calls?.get(selected);
  const isOpen = calls.some(({ call_id: id }) => id === selected);
  const all = looked && !isOpen && namespaceOf(looked.module) === robot ? [...calls, { ...looked, call_id: looked.id }] : calls;
  return all.filter(({ arguments: { x, y } }) => Number.isFinite(x) && Number.isFinite(y)).map((call) => ({
    x: call.arguments.x, y: call.arguments.y, text: call.skill, isSelected: call.call_id === selected,
  }));
}
