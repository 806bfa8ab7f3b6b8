/** The camera panel: pictures of the robots' cameras with what is detected in them. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { name as nameElement, useSurface, useTick, useTopics, useVisible, write } from "../canvas/hooks.js";
import { Empty, Panel } from "../parts.js";
import { seenIn } from "./boxes.js";
import { CameraFeed } from "./camera_feed.js";
import { camerasOf, defaultCameras, detectionsFor } from "./cameras.js";
import { freshness } from "./freshness.js";

const MAX_HZ = 15;

export function CameraPanel({ session }) {
  const topics = useTopics(session.live);
  const [choice, choose] = useState("");
  const cameras = camerasOf(topics, session.robot);
  const chosen = cameras.find(({ topic }) => topic === choice);
  const shown = chosen ? [chosen] : defaultCameras(cameras);
  const tools = cameras.length > 1 && html`<select aria-label="Camera" value=${chosen ? choice : ""}
      onChange=${(event) => choose(event.currentTarget.value)}>
    <option value="">${shown.length > 1 && !chosen ? "A camera of each robot" : "The robot's camera"}</option>
    ${cameras.map(({ topic }) => html`<option key=${topic} value=${topic}>${topic}</option>`)}
  </select>`;
  return html`<${Panel} title="Camera" area="camera" tools=${tools}>
    ${shown.length === 0 && html`<${Empty}>${whyNone(topics, session)}<//>`}
    ${shown.length > 0 && html`<div class=${`lenses of-${shown.length}`}>${shown.map((camera) => html`<${Picture}
      key=${camera.topic} session=${session} camera=${camera} detections=${detectionsFor(camera, topics)?.topic ?? null}
      name=${shown.length > 1 || chosen ? camera.robot || camera.topic : ""} />`)}</div>`}
  <//>`;
}

function whyNone(topics, { robot, readOnly }) {
  if (readOnly) return `There are no pictures${robot && ` of ${robot}`} in the recording.`;
  if (topics.length === 0) return "No topic of the robot is heard yet.";
  return `${robot || "No module"} sends ${robot ? "no " : ""}pictures: a camera is a topic with sensor_msgs.Image.`;
}

/** One camera. Pictures are drawn as they come, without rendering a view. */
function Picture({ session, camera, detections, name }) {
  const { live, now, state } = session;
  const [place, isVisible] = useVisible();
  const [words, facts, stale, blind] = [useRef(null), useRef(null), useRef(null), useRef(null)];
  const feed = useMemo(() => new CameraFeed(), []);
  const [canvas, surface] = useSurface((context, width, height) => feed.draw(context, width, height, session.state, camera));

  useEffect(() => {
    if (!isVisible) return undefined;
    return live.watch(camera.topic, (header, payload) => feed.take(header, payload, surface), { maxHz: MAX_HZ });
  }, [live, camera.topic, isVisible]);
  useEffect(() => {
    if (!isVisible || detections === null) return undefined;
    return live.watch(detections, (header) => {
      feed.sightings.add(seenIn(header));
      surface.current?.refresh();
    }, { maxHz: MAX_HZ });
  }, [live, detections, isVisible]);
  useEffect(() => {
    surface.current?.refresh();
  }, [state]);
  useEffect(() => () => feed.close(), []);
  useTick(1000, () => {
    if (feed.isClosed || document.hidden) return;
    const { picture, sightings } = feed;
    const is = freshness({ ...feed, seen: sightings.newest?.utime ?? null }, now(), live.errors[camera.topic]);
    write(stale.current, is.problem);
    stale.current?.parentElement?.classList.toggle("stale", is.isStale);
    write(blind.current, is.blind);
    write(facts.current, is.rate && `${is.rate} · ${picture.width} × ${picture.height}`);
    const said = feed.inWords(session.state, camera, is.problem || is.blind);
    write(words.current, said);
    nameElement(canvas.current, `Camera ${camera.topic}. ${said}`);
  });
  return html`<div class="lens" ref=${place}>
    <canvas ref=${canvas} role="img" aria-label=${`Camera ${camera.topic}`}></canvas>
    ${name && html`<span class="chip name">${name}</span>`}
    <span class="chip size" ref=${facts} aria-hidden="true"></span>
    <span class="chip blind" ref=${blind} aria-hidden="true"></span>
    <span class="chip age" ref=${stale} aria-hidden="true"></span>
    <p class="hidden" ref=${words}></p>
  </div>`;
}
