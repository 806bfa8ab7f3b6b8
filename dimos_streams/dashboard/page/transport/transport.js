/** The bar with which a recording is played, at any speed, stepped from event to event, and set to any moment. */

import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { MOMENT, momentOf, momentText } from "./time.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const LOOK_MS = 100;
const WIDE = 1000;
const KINDS = { open: "open", update: "update", gap: "bad", completed: "good", cancelled: "calm" };
const PATHS = {
  play: "M4.5 2.5v11l9-5.5z",
  pause: "M4.5 2.5h2.4v11H4.5zM9.1 2.5h2.4v11H9.1z",
  back: "M11.5 3v10l-7-5zM3 3h1.4v10H3z",
  forward: "M4.5 3v10l7-5zM11.6 3H13v10h-1.4z",
};

/** @param {{transport: import("./link.js").Transport}} given */
export function TransportBar({ transport }) {
  const now = useMoment(transport);
  const { about, playing } = transport;
  if (!about) return html`<div class="transport" role="group" aria-label="Recording"><p class="quiet">Opening the recording …</p></div>`;
  const span = Math.max(1, about.end - about.begin);
  const last = transport.last;
  return html`<div class="transport" role="group" aria-label="Recording">
    <div class="keys">
      <${Key} name="back" label="To the event before" press=${() => transport.step(true)} />
      <${Key} name=${playing ? "pause" : "play"} label=${playing ? "Pause" : "Play"} press=${() => transport.toggle()} />
      <${Key} name="forward" label="To the next event" press=${() => transport.step()} />
      <label class="speed"><span class="hidden">Speed</span>
        <select value=${String(transport.speed)} onChange=${(event) => transport.setSpeed(Number(event.target.value))}>
          ${SPEEDS.map((speed) => html`<option key=${speed} value=${String(speed)}>${speed}×</option>`)}
        </select></label>
    </div>
    <div class="track">
      <${Marks} about=${about} span=${span} />
      <input type="range" aria-label="Moment" min="0" max=${span} step=${Math.max(1, Math.round(span / 10_000))}
        value=${now - about.begin} aria-valuetext=${`${momentText(now - about.begin)} of ${momentText(span)}`}
        onInput=${(event) => transport.seek(about.begin + Number(event.target.value))} />
    </div>
    <${Entry} transport=${transport} now=${now} span=${span} />
    <p class="said" title=${last?.text ?? ""}>${last ? last.text : "Nothing has happened yet"}</p>
    ${about.notes.length > 0 && html`<details class="notes"><summary>${about.notes.length === 1 ? "1 note" : `${about.notes.length} notes`}</summary>
      <ul>${about.notes.map((note) => html`<li key=${note}>${note}</li>`)}</ul></details>`}
  </div>`;
}

/** Return the present moment, and render again and again while the recording plays. */
function useMoment(transport) {
  const [, look] = useState(0);
  useEffect(() => {
    if (!transport.playing) return undefined;
    const timer = setInterval(() => look((count) => count + 1), LOOK_MS);
    return () => clearInterval(timer);
  }, [transport, transport.playing]);
  return transport.now();
}

function Key({ name, label, press }) {
  return html`<button type="button" class="plain icon-only" aria-label=${label} title=${label} onClick=${press}>
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path fill="currentColor" d=${PATHS[name]} /></svg></button>`;
}

/** The marks of what happened, one path for each kind: thousands of marks cost no more than a few. */
function Marks({ about, span }) {
  const paths = {};
  for (const { utime, kind } of about.marks) {
    const place = (((utime - about.begin) / span) * WIDE).toFixed(1);
    const own = Object.hasOwn(KINDS, kind) ? KINDS[kind] : "bad";
    paths[own] = `${paths[own] ?? ""}M${place} 0v10`;
  }
  return html`<svg class="marks" viewBox="0 0 ${WIDE} 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">
    ${Object.entries(paths).map(([kind, d]) => html`<path key=${kind} class=${kind} d=${d} vector-effect="non-scaling-stroke" />`)}</svg>`;
}

/** The present moment as a text that can be edited. */
function Entry({ transport, now, span }) {
  const [text, write] = useState(null);
  const go = (event) => {
    event.preventDefault();
    const moment = momentOf(text ?? "");
    if (moment !== null) transport.seek(transport.about.begin + moment);
    write(null);
  };
  return html`<form class="moment" onSubmit=${go}>
    <input aria-label="Go to" pattern=${MOMENT} title="A moment: 75, 1:15 or 1:02:03.4" autocomplete="off" size="7" value=${text ?? momentText(now - transport.about.begin)}
      onInput=${(event) => write(event.target.value)} onBlur=${() => write(null)} />
    <span class="quiet">/ ${momentText(span)}</span></form>`;
}
