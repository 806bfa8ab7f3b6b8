/** Small parts of views. */

import { useId, useState } from "preact/hooks";
import { html } from "./html.js";
import { listed } from "./format.js";
import { clipped } from "./texts.js";

/**
 * A region of the page with its heading. `tools` are on the line of the heading, `note` is beside its text. `scrolls`
 * makes the content focusable, so that it can be scrolled by keys.
 * @param {{title: string, area: string, tools?: unknown, note?: unknown, scrolls?: boolean, children?: unknown}} given
 */
export function Panel({ title, area, tools, note, scrolls = false, children }) {
  const id = useId();
  return html`<section class=${`panel ${area}`} aria-labelledby=${id}>
    <div class="head"><h2 id=${id}>${title}</h2>${note}${tools && html`<div class="tools">${tools}</div>`}</div>
    <div class="body" tabindex=${scrolls ? 0 : undefined}>${children}</div>
  </section>`;
}

/** A call in the form of code: `skill(name=value)`. */
export function Written({ call, length = 300 }) {
  return html`<code>${call.skill}(${clipped(listed(call.arguments), length)})</code>`;
}

/** The text in a place that is empty: why it is, and what to do about it. */
export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

export function Badge({ kind = "", children }) {
  return html`<span class=${`badge ${kind}`}>${children}</span>`;
}

/** A text, or a value as JSON, that is folded away behind a summary. */
export function Folded({ summary, value, open = false }) {
  const [isOpen, become] = useState(open);
  return html`<details open=${isOpen} onToggle=${(event) => become(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${isOpen && html`<pre tabindex="0">${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>`}
  </details>`;
}
