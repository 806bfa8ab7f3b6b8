/** The map panel: what robots have found out about the floor, where they are, and who is there. */

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { followedBy } from "../canvas/followed.js";
import { name, useNewest, useSurface, useTick, useTopics, useVisible, write } from "../canvas/hooks.js";
import { namespaceOf } from "../format.js";
import { Panel } from "../parts.js";
import { shown } from "../texts.js";
import { Fitting, middleOfRobots } from "./fitting.js";
import { Floor } from "./floor.js";
import { metresText } from "./geometry.js";
import { watchGestures } from "./gestures.js";
import { GoDialog } from "./go_dialog.js";
import { isStopped } from "./go_to.js";
import { drawMap } from "./paint.js";
import { palette, ROBOTS } from "./palette.js";
import { sceneOf } from "./scene.js";
import { Tiles } from "./tiles.js";
import { watchedTopics } from "./topics.js";
import { View } from "./view.js";
import { mapInWords } from "./words.js";

/** @param {{session: import("../session.js").Session}} given */
export function MapPanel({ session }) {
  const { live, state, robot: chosenRobot, now, readOnly } = session;
  const kept = useRef(null);
  const nothing = useRef(null);
  kept.current ??= begun();
  const [follows, follow] = useState(false);
  const [choice, choose] = useState("");
  const [point, pick] = useState(null);
  const [keys, know] = useState("");
  const [place, isVisible] = useVisible();
  const [list, where] = [useRef(null), useRef(null)];
  const chosen = useNewest({ choice, follows, point });
  const [canvas, surface] = useSurface((context2d, width, height) => {
    const map = paint(context2d, width, height, kept.current, session, chosen.current);
    // In the same frame, so that no robot is seen below words that there is none.
    write(nothing.current, map ? "" : `${session.robot || "No robot"} has ${session.robot ? "not " : ""}said yet where it is.`);
    know(kept.current.maps.map(({ key, robots }) => [key, ...robots.map(({ name }) => name)].join(",")).join(";"));
  });
  const wanted = watchedTopics(useTopics(live), chosenRobot);
  const wantedKey = wanted.map(({ topic }) => topic).join(" ");

  useEffect(() => {
    if (!isVisible) return undefined;
    const ends = wanted.map(({ topic, rate }) => live.watch(topic, (header, payload) => {
      kept.current.floor.take(header, payload);
      return surface.current?.refresh();
    }, { maxHz: rate }));
    return () => ends.forEach((end) => end());
  }, [live, wantedKey, isVisible]);
  useEffect(() => {
    if (state) kept.current.floor.show(state, session.run.trails, now());
    surface.current?.refresh();
  }, [state]);
  useEffect(() => {
    surface.current?.request();
  }, [point, follows, choice, session.selected]);
  useEffect(() => watchGestures(place.current, {
    pan: (right, down) => {
      follow(false);
      change((view) => view.pan(right, down));
    },
    // A robot that is followed stays in the middle when somebody zooms.
    zoom: (factor, pixel) => change((view) => view.zoom(factor, chosen.current.follows ? undefined : pixel)),
    pick: (pixel) => ask(kept.current.view.toFloor(pixel)),
    hover: (pixel) => write(where.current, pixel ? hovered(kept.current, pixel) : ""),
    key: onKey,
  }), []);
  const describe = () => {
    if (document.hidden || !list.current) return; // references are cleared before effects end
    kept.current.fitting.isDue = true;
    surface.current?.refresh(); // ages grow even if no message comes
    const map = mapOf(kept.current, session.robot, chosen.current.choice);
    const said = mapInWords(map, session.state, now()).map(shown);
    name(canvas.current, `Map. ${said[0] ?? "Nothing is known of the floor yet."}`);
    const lines = said.map((text, index) => list.current.children[index]?.textContent === text ? null : text);
    if (said.length !== list.current.children.length || lines.some(Boolean)) {
      list.current.replaceChildren(...said.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    }
  };
  useTick(1000, describe);
  useEffect(describe, [keys]); // a change of who is there is said at once

  /** Change the view by hand, after which it no longer fits itself to the known area. */
  function change(how) {
    kept.current.fitting.end();
    how(kept.current.view);
    surface.current?.request();
  }
  function fit() {
    follow(false);
    kept.current.fitting.begin();
    surface.current?.request();
  }
  function ask(there) {
    if (!session.readOnly && mapOf(kept.current, session.robot, chosen.current.choice)) pick(there);
  }
  function onKey(key) {
    const { view } = kept.current;
    if (key === "Enter") ask({ x: view.x, y: view.y });
    else if (key === "f") follow((before) => !before);
    else if (key === "0" || key === "Home") fit();
    else return false;
    return true;
  }
  /** Show the point that Enter would ask for only to those who use keys. */
  function focus(isFocused) {
    if (kept.current.isFocused === isFocused) return;
    kept.current.isFocused = isFocused;
    surface.current?.request();
  }

  const { maps } = kept.current;
  const map = mapOf(kept.current, chosenRobot, choice);
  const tools = html`
    ${maps.length > 1 && html`<select aria-label="Map" value=${map?.key} onChange=${(event) => choose(event.currentTarget.value)}>
      ${maps.map((each) => html`<option key=${each.key} value=${each.key}>${titleOf(each)}</option>`)}</select>`}
    <button type="button" aria-pressed=${follows} onClick=${() => follow(!follows)} title="Keep the robot in the middle (F)">Follow</button>
    <button type="button" onClick=${fit} title="Show all that is known (0)">Fit</button>
    <button type="button" class="square" aria-label="Zoom in" onClick=${() => change((view) => view.zoom(1.4))}>+</button>
    <button type="button" class="square" aria-label="Zoom out" onClick=${() => change((view) => view.zoom(1 / 1.4))}>−</button>`;
  return html`<${Panel} title="Map" area="map" note=${map && html`<span class="quiet">${titleOf(map)}</span>`} tools=${tools}>
    <div class="floor" ref=${place} role="application" tabindex="0" onFocus=${(event) => focus(event.currentTarget.matches(":focus-visible"))}
        onBlur=${() => focus(false)} onKeyDown=${() => focus(true)} onPointerDown=${() => focus(false)}
        aria-label=${`Map: arrows move it, plus and minus zoom, F follows the robot, 0 shows all${readOnly ? "" : ", Enter sends the robot to the middle"}`}>
      <canvas ref=${canvas} role="img" aria-label="Map"></canvas>
    </div>
    ${map && map.robots.length > 1 && html`<${Legend} map=${map} state=${state} key=${keys} />`}
    <span class="over where" ref=${where} aria-hidden="true"></span>
    <p class="nothing" ref=${nothing}></p>
    <ul class="hidden" aria-label="What the map shows" ref=${list}></ul>
    ${point && map && html`<${GoDialog} session=${session} map=${map} point=${point} close=${() => pick(null)} />`}
  <//>`;
}

/** Return what a map keeps from one drawing to the next. */
function begun() {
  const view = new View();
  return { floor: new Floor(), view, fitting: new Fitting(view), tiles: new Tiles(), isFocused: false, maps: [] };
}

function Legend({ map, state }) {
  const names = namesOf(state);
  return html`<ul class="over robots" aria-label="Robots">${map.robots.map(({ name }) => html`<li key=${name}
    style=${{ "--mark": `var(--robot-${Math.max(0, names.indexOf(name)) % ROBOTS})` }}>${name || "robot"}</li>`)}</ul>`;
}

function titleOf({ frame, robots }) {
  const alone = robots.length === 1 && robots[0].name;
  return alone ? `in ${frame} of ${alone}` : `in ${frame || "no named frame"}`;
}

/** Return the names of robots in the order of their colours. */
function namesOf(state) {
  return Object.keys(state?.robots ?? {}).sort();
}

/** Return the map that is shown: the one that was chosen, or that of the chosen robot. */
function mapOf(kept, robot, choice) {
  kept.maps = kept.floor.maps;
  const withRobot = kept.maps.filter(({ robots }) => robot === "" || robots.some(({ name }) => name === robot));
  return withRobot.find(({ key }) => key === choice) ?? withRobot[0] ?? null;
}

/** @returns {import("./floor.js").SharedMap|null} the map that was drawn */
function paint(context2d, width, height, kept, session, { choice, follows, point }) {
  const { state, robot: chosenRobot } = session;
  const { view } = kept;
  [view.width, view.height] = [width, height];
  const map = mapOf(kept, chosenRobot, choice);
  const colours = palette();
  const names = namesOf(state);
  const drawn = (map?.robots ?? []).map((robot) => ({
    robot, place: Math.max(0, names.indexOf(robot.name)), name: map.robots.length > 1 ? robot.name : "",
    followed: new Set(followedBy(state, robot.name).map(({ track }) => track)),
    isStopped: isStopped(state, robot.name), scene: sceneOf(state, robot.name), goals: goalsOf(session, robot.name),
  }));
  if (map && follows) {
    const middle = middleOfRobots(map, chosenRobot);
    [view.x, view.y] = [middle.x, middle.y];
  } else if (map) {
    kept.fitting.fit(map);
  }
  drawMap(context2d, { view, colours, tiles: kept.tiles, robots: drawn, now: session.now(), pin: point, hasCross: kept.isFocused && point === null });
  return map;
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

/** Return the coordinates under the mouse as text, in the map's frame. */
function hovered(kept, pixel) {
  const { x, y } = kept.view.toFloor(pixel);
  return `x ${metresText(x)} m · y ${metresText(y)} m`;
}
