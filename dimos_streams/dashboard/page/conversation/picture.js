/** A picture that a skill has kept among the run's files. */

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";

export function Picture({ name, label, session }) {
  const frame = useRef(null);
  const [url, show] = useState(null);
  const [why, fail] = useState("");
  useEffect(() => {
    const seen = new IntersectionObserver(async (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      seen.disconnect();
      try {
        show(URL.createObjectURL(await fetched(name, session)));
      } catch (error) {
        fail(error.message);
      }
    });
    seen.observe(frame.current);
    return () => seen.disconnect();
  }, [name]);
  useEffect(() => () => url && URL.revokeObjectURL(url), [url]);
  return html`<div class="picture" ref=${frame}>
    ${url ? html`<img src=${url} alt=${label} />` : html`<p class="quiet">${why ? `The picture can't be shown: ${why}` : "The picture comes …"}</p>`}
  </div>`;
}

async function fetched(name, session) {
  const response = await session.monitor.get(`pictures/${encodeURIComponent(name)}`);
  if (response.ok) return response.blob();
  throw new Error((await response.json()).detail);
}
