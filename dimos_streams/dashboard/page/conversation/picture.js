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
        if (!isGone) show((made = URL.createObjectURL(picture)));
      } catch (error) {
        if (!isGone) fail(error.message);
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
    ${url ? html`<img src=${url} alt=${label} />` : html`<p class="quiet">${why ? `The picture can't be shown: ${why}` : "The picture comes …"}</p>`}
  </div>`;
}

async function fetched(name, session) {
  const response = await session.monitor.get(`pictures/${encodeURIComponent(name)}`);
  if (response.ok) return response.blob();
  throw new Error((await response.json()).detail);
}
