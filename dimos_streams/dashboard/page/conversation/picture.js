/** A picture that a skill has kept among the run's files. */

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

export function Picture({ name, label, session }) {
  const frame = useRef(null);
  const [url, show] = useState(null);
  const [why, fail] = useState("");
  useEffect(() => {
    show(null);
    fail("");
    let made = null;
    let isGone = false;
    const seen = new IntersectionObserver(async (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      seen.disconnect();
      try {
        const picture = await fetched(name, session);
        if (isGone) return;
        if (picture) show((made = URL.createObjectURL(picture)));
        else fail(session.readOnly ? "This picture is not in the recording." : "The picture is not there any more.");
      } catch (error) {
        if (!isGone) fail(`The picture can’t be shown: ${error.message}`);
      }
    });
    seen.observe(frame.current);
    return () => {
      isGone = true;
      seen.disconnect();
      if (made) URL.revokeObjectURL(made);
    };
  }, [name]);
  return html`<div class="picture" ref=${frame}>
    ${url ? html`<img src=${url} alt=${label} />` : html`<p class="quiet">${why || "The picture comes …"}</p>`}
  </div>`;
}

/** @returns {Promise<Blob|null>} null if there is none */
async function fetched(name, session) {
  const response = await session.monitor.get(`pictures/${encodeURIComponent(name)}`);
  if (response.ok) return response.blob();
  if (response.status === 404) return null;
  throw new Error((await response.json()).detail);
}
