/** Small parts of views. */

import { Component, h } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { agoText, clockText, dateOf, dayText, listed } from "./format.js";
import { clipped } from "./texts.js";

/** Return a view that is rendered again only when its properties change. */
export function memo(view, isSame = hasSame) {
  function differs(next) {
    return !isSame(this.props, next);
  }
  return function Memo(props) {
    this.shouldComponentUpdate = differs;
    return h(view, props);
  };
}

function hasSame(before, next) {
  const names = Object.keys(next);
  return names.length === Object.keys(before).length && names.every((name) => next[name] === before[name]);
}

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

/** A view whose errors leave the rest of the page alone: whatever comes from outside, Stop stays within reach.
 * After an error the view is tried again once `of` is something else. */
export class Apart extends Component {
  componentDidCatch(error) {
    reportError(error);
    this.setState({ failed: error, of: this.props.of });
  }

  render({ view, name, area = "", of, given }, { failed, of: failedOf }) {
    if (!failed || failedOf !== of) return h(view, given);
    return html`<section class=${`panel ${area}`} aria-label=${name} role="alert"><p class="bad">${name} can't be shown: ${String(failed)}</p></section>`;
  }
}

/** @param {{utime: number}} given µs since the Unix epoch, of the robot's clock */
export function Time({ utime }) {
  const date = dateOf(utime);
  return html`<time datetime=${date.toISOString()} title=${dayText(date)}>${clockText(date)}</time>`;
}

/** The age of something; it is updated every second. @param {{utime: number, now: () => number}} given */
export function Ago({ utime, now, text = agoText }) {
  const date = dateOf(utime);
  const words = useSecond(() => text((now() - utime) / 1e6));
  return html`<time datetime=${date.toISOString()} title=${dayText(date)}>${words}</time>`;
}

const seconds = new Set();
setInterval(() => {
  if (!document.hidden) for (const tick of seconds) tick();
}, 1000);

/** Return what `look` gives. Once a second, while the tab is visible, the view is rendered again if that changes. */
export function useSecond(look = () => performance.now()) {
  const [, show] = useState(0);
  const shown = useRef(null);
  const newest = useRef(look);
  newest.current = look;
  shown.current = look();
  useEffect(() => {
    const tick = () => newest.current() !== shown.current && show((count) => count + 1);
    seconds.add(tick);
    return () => seconds.delete(tick);
  }, []);
  return shown.current;
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
