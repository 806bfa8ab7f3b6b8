/** The camera panel: pictures of the robots' cameras with what is detected in them. */

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { followedBy } from "../canvas/followed.js";
import { name as nameElement, useSurface, useTick, useTopics, useVisible, write } from "../canvas/hooks.js";
import { Empty, Panel } from "../parts.js";
import { Sightings, seenIn } from "./boxes.js";
import { camerasOf, defaultCameras, detectionsFor } from "./cameras.js";
import { freshness } from "./freshness.js";
import { drawBoxes, labelOf, placeFor } from "./picture.js";

const MAX_HZ = 15;
const RATE_S = 3;

/** @param {{session: import("../session.js").Session}} given */
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
  const words = useRef(null);
  const facts = useRef(null);
  const stale = useRef(null);
  const blind = useRef(null);
  const kept = useRef(null);
  kept.current ??= { picture: null, header: null, fresh: 0, times: [], sightings: new Sightings(), failure: "" };
  const [canvas, surface] = useSurface((context, width, height) => paint(context, width, height, kept.current, session.state, camera));

  useEffect(() => {
    if (!isVisible) return undefined;
    return live.watch(camera.topic, (header, payload) => take(kept.current, header, payload, surface), { maxHz: MAX_HZ });
  }, [live, camera.topic, isVisible]);
  useEffect(() => {
    if (!isVisible || detections === null) return undefined;
    return live.watch(detections, (header) => {
      kept.current.sightings.add(seenIn(header));
      surface.current?.refresh();
    }, { maxHz: MAX_HZ });
  }, [live, detections, isVisible]);
  useEffect(() => {
    surface.current?.refresh();
  }, [state]);
  useEffect(() => () => {
    kept.current.picture?.close();
    kept.current = null;
  }, []);
  useTick(1000, () => {
    if (!kept.current || document.hidden) return;
    const { picture, sightings } = kept.current;
    const is = freshness({ ...kept.current, seen: sightings.newest?.utime ?? null }, now(), live.errors[camera.topic]);
    write(stale.current, is.problem);
    stale.current?.parentElement?.classList.toggle("stale", is.isStale);
    write(blind.current, is.blind);
    write(facts.current, is.rate && `${is.rate} · ${picture.width} × ${picture.height}`);
    const said = wordsFor(kept.current, session.state, camera, is.problem || is.blind);
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

/** Take a picture in place of the one before; done when it is on the screen. */
async function take(kept, header, payload, surface) {
  let picture;
  try {
    picture = await createImageBitmap(new Blob([payload], { type: `image/${header.encoding}` }));
  } catch {
    kept.failure = `Pictures of ${header.topic} can't be shown: they are no ${header.encoding.toUpperCase()}`;
    return undefined;
  }
  if (!surface.current) {
    picture.close();
    return undefined;
  }
  kept.picture?.close();
  // A frozen camera sends the picture of one instant again and again.
  const isNew = header.stamp === null || header.stamp !== kept.header?.stamp;
  Object.assign(kept, { picture, header, fresh: isNew ? header.utime : kept.fresh, failure: "" });
  const began = performance.now() - RATE_S * 1000;
  kept.times = [...kept.times.filter((time) => time > began), performance.now()];
  return surface.current.request();
}

function paint(context, width, height, kept, state, camera) {
  if (!kept?.picture) return;
  const { picture, header } = kept;
  const place = placeFor(picture, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, place.left, place.top, place.width, place.height);
  const followed = new Set(followedBy(state, camera.robot).map(({ track }) => track));
  drawBoxes(context, place, kept.sightings.at(header.stamp, header.utime), followed);
}

/** Return the picture in words, for screen readers. */
function wordsFor(kept, state, camera, since) {
  if (!kept.header) return since || "No picture yet.";
  const followed = new Set(followedBy(state, camera.robot).map(({ track }) => track));
  const boxes = kept.sightings.at(kept.header.stamp, kept.header.utime);
  const seen = boxes.map((box) => labelOf(box, followed.has(box.track))).join("; ");
  return `${since ? `${since}. ` : ""}${seen ? `In sight: ${seen}.` : "Nobody is in sight."}`;
}
