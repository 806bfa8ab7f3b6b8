/** The newest picture of one camera, with what was seen lately. */

import { followedBy } from "../canvas/followed.js";
import { Sightings } from "./boxes.js";
import { drawBoxes, labelOf, placeFor } from "./picture.js";

const RATE_S = 3;

export class CameraFeed {
  sightings = new Sightings();
  /** @type {ImageBitmap|null} */
  picture = null;
  /** The header of the picture. */
  header = null;
  /** When the newest picture came that was not the one before once more, µs. */
  fresh = 0;
  /** When the newest pictures were taken, ms. @type {number[]} */
  times = [];
  /** Why the newest picture can't be shown; empty if it can. */
  failure = "";
  isClosed = false;

  /** Take a picture in place of the one before; done when it is on the screen. */
  async take(header, payload, surface) {
    let picture;
    try {
      picture = await createImageBitmap(new Blob([payload], { type: `image/${header.encoding}` }));
    } catch {
      this.failure = `Pictures of ${header.topic} can't be shown: they are no ${header.encoding.toUpperCase()}`;
      return undefined;
    }
    if (!surface.current) {
      picture.close();
      return undefined;
    }
    this.picture?.close();
    // A frozen camera sends the picture of one instant again and again.
    const isNew = header.stamp === null || header.stamp !== this.header?.stamp;
    Object.assign(this, { picture, header, fresh: isNew ? header.utime : this.fresh, failure: "" });
    const began = performance.now() - RATE_S * 1000;
    this.times = [...this.times.filter((time) => time > began), performance.now()];
    return surface.current.request();
  }

  draw(context, width, height, state, camera) {
    if (!this.picture) return;
    const place = placeFor(this.picture, width, height);
    context.imageSmoothingQuality = "medium";
    context.drawImage(this.picture, place.left, place.top, place.width, place.height);
    drawBoxes(context, place, this.#boxes(), followedIn(state, camera));
  }

  /** Return the picture in words, for screen readers. */
  inWords(state, camera, since) {
    if (!this.header) return since || "No picture yet.";
    const followed = followedIn(state, camera);
    const seen = this.#boxes().map((box) => labelOf(box, followed.has(box.track))).join("; ");
    return `${since ? `${since}. ` : ""}${seen ? `In sight: ${seen}.` : "Nobody is in sight."}`;
  }

  /** Give the picture back, and show none any more. */
  close() {
    this.picture?.close();
    this.picture = null;
    this.isClosed = true;
  }

  #boxes() {
    return this.sightings.at(this.header.stamp, this.header.utime);
  }
}

/** Return the tracks of those who are followed by a camera's robot. */
function followedIn(state, camera) {
  return new Set(followedBy(state, camera.robot).map(({ track }) => track));
}
