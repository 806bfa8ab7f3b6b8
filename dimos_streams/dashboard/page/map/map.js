/** The map panel: what robots have found out about the floor, where they are, and who is there. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { name as nameElement, useNewest, useSurface, useTick, useTopics, useVisible, write } from "../canvas/hooks.js";
import { Panel } from "../parts.js";
import { shown } from "../texts.js";
import { watchGestures } from "./gestures.js";
import { GoDialog } from "./go_dialog.js";
import { MapModel, namesOf } from "./map_model.js";
import { ROBOTS } from "./palette.js";
import { watchedTopics } from "./topics.js";
import { mapInWords } from "./words.js";

export function MapPanel({ session }) {
  const { state, readOnly } = session;
  const model = useMemo(() => new MapModel(), []);
  const [follows, setFollows] = useState(false);
  const [choice, setChoice] = useState("");
  const [point, setPoint] = useState(null);
  const [population, setPopulation] = useState("");
  const [floor, isVisible] = useVisible();
  const [emptyNote, coordinates] = [useRef(null), useRef(null)];
  const chosen = useNewest({ choice, follows, point });
  const [canvas, surface] = useSurface((context2d, width, height) => {
    const map = model.draw(context2d, width, height, session, chosen.current);
    // In the same frame, so that no robot is seen below words that there is none.
    write(emptyNote.current, map ? "" : `${session.robot || "No robot"} has ${session.robot ? "not " : ""}said yet where it is.`);
    setPopulation(model.population);
  });
  useReports(model, session, isVisible, surface);
  useEffect(() => {
    surface.current?.request();
  }, [point, follows, choice, session.selected]);
  useEffect(() => watchGestures(floor.current, {
    pan: (right, down) => {
      setFollows(false);
      change((view) => view.pan(right, down));
    },
    // A robot that is followed stays in the middle when somebody zooms.
    zoom: (factor, pixel) => change((view) => view.zoom(factor, chosen.current.follows ? undefined : pixel)),
    pick: (pixel) => pick(model.view.toFloor(pixel)),
    hover: (pixel) => write(coordinates.current, pixel ? model.coordinatesAt(pixel) : ""),
    key: onKey,
  }), []);
  const spoken = useSpokenMap(model, session, chosen, population, canvas, surface);

  /** Change the view by hand, after which it no longer fits itself to the known area. */
  function change(how) {
    model.fitting.end();
    how(model.view);
    surface.current?.request();
  }
  function fit() {
    setFollows(false);
    model.fitting.begin();
    surface.current?.request();
  }
  /** Ask whether the robot is to go to a point. */
  function pick(there) {
    if (!session.readOnly && model.mapFor(session.robot, chosen.current.choice)) setPoint(there);
  }
  function onKey(key) {
    const { view } = model;
    if (key === "Enter") pick({ x: view.x, y: view.y });
    else if (key === "f") setFollows((before) => !before);
    else if (key === "0" || key === "Home") fit();
    else return false;
    return true;
  }
  /** Show the point that Enter would ask for only to those who use keys. */
  function focus(isFocused) {
    if (model.isFocused === isFocused) return;
    model.isFocused = isFocused;
    surface.current?.request();
  }

  const { maps } = model;
  const map = model.mapFor(session.robot, choice);
  const tools = html`<${Tools} maps=${maps} map=${map} choose=${setChoice} follows=${follows} follow=${setFollows} fit=${fit}
    zoom=${(factor) => change((view) => view.zoom(factor))} />`;
  return html`<${Panel} title="Map" area="map" note=${map && html`<span class="quiet">${titleOf(map)}</span>`} tools=${tools}>
    <div class="floor" ref=${floor} role="application" tabindex="0" onFocus=${(event) => focus(event.currentTarget.matches(":focus-visible"))}
        onBlur=${() => focus(false)} onKeyDown=${() => focus(true)} onPointerDown=${() => focus(false)}
        aria-label=${`Map: arrows move it, plus and minus zoom, F follows the robot, 0 shows all${readOnly ? "" : ", Enter sends the robot to the middle"}`}>
      <canvas ref=${canvas} role="img" aria-label="Map"></canvas>
    </div>
    ${map && map.robots.length > 1 && html`<${Legend} map=${map} state=${state} key=${population} />`}
    <span class="over where" ref=${coordinates} aria-hidden="true"></span>
    <p class="nothing" ref=${emptyNote}></p>
    <ul class="hidden" aria-label="What the map shows" ref=${spoken}></ul>
    ${point && map && html`<${GoDialog} session=${session} map=${map} point=${point} close=${() => setPoint(null)} />`}
  <//>`;
}

/** Keep a model up to date by the topics of the robots while the panel is seen, and by the monitor's reports. */
function useReports(model, { live, robot, run, state, now }, isVisible, surface) {
  const wanted = watchedTopics(useTopics(live), robot);
  const wantedKey = wanted.map(({ topic }) => topic).join(" ");
  useEffect(() => {
    if (!isVisible) return undefined;
    const ends = wanted.map(({ topic, rate }) => live.watch(topic, (header, payload) => {
      model.floor.take(header, payload);
      return surface.current?.refresh();
    }, { maxHz: rate }));
    return () => ends.forEach((end) => end());
  }, [live, wantedKey, isVisible]);
  useEffect(() => {
    if (state) model.floor.show(state, run.trails, now());
    surface.current?.refresh();
  }, [state]);
}

/** Keep a list of what the map shows, for screen readers. @returns the reference of its element */
function useSpokenMap(model, session, chosen, population, canvas, surface) {
  const list = useRef(null);
  const describe = () => {
    if (document.hidden || !list.current) return; // references are cleared before effects end
    model.fitting.isDue = true;
    surface.current?.refresh(); // ages grow even if no message comes
    const map = model.mapFor(session.robot, chosen.current.choice);
    const said = mapInWords(map, session.state, session.now()).map(shown);
    nameElement(canvas.current, `Map. ${said[0] ?? "Nothing is known of the floor yet."}`);
    const lines = said.map((text, index) => list.current.children[index]?.textContent === text ? null : text);
    if (said.length !== list.current.children.length || lines.some(Boolean)) {
      list.current.replaceChildren(...said.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    }
  };
  useTick(1000, describe);
  useEffect(describe, [population]); // a change of who is there is said at once
  return list;
}

function Tools({ maps, map, choose, follows, follow, fit, zoom }) {
  return html`
    ${maps.length > 1 && html`<select aria-label="Map" value=${map?.key} onChange=${(event) => choose(event.currentTarget.value)}>
      ${maps.map((each) => html`<option key=${each.key} value=${each.key}>${titleOf(each)}</option>`)}</select>`}
    <button type="button" aria-pressed=${follows} onClick=${() => follow(!follows)} title="Keep the robot in the middle (F)">Follow</button>
    <button type="button" onClick=${fit} title="Show all that is known (0)">Fit</button>
    <button type="button" class="square" aria-label="Zoom in" onClick=${() => zoom(1.4)}>+</button>
    <button type="button" class="square" aria-label="Zoom out" onClick=${() => zoom(1 / 1.4)}>−</button>`;
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
