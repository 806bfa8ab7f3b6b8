/** A call in the conversation: its state, its newest text and figures; all else is folded away. */

import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { reasonText } from "../reasons.js";
import { CallName, CancelCall } from "../calls/buttons.js";
import { lookOf } from "../calls/outcomes.js";
import { Picture } from "./picture.js";
import { pictureOf } from "./report.js";
import { givenText, measureOf, namespaceOf, numberText, skillTitle, spanText, titled, unitText } from "../format.js";
import { memo } from "../memo.js";
import { Badge } from "../parts.js";
import { Ago, useSecond } from "../times.js";

const MAX_FIGURES = 4;
const MAX_REPORTS = 3;

export const CallCard = memo(({ item, agent, known, report, reports, bad, isSelected, session }) => {
  const state = known?.state ?? (report?.state || (bad ? "failed" : "completed"));
  const isOpen = ["requested", "open"].includes(state);
  const space = namespaceOf(agent);
  const said = (known?.closed === null ? known.text : known?.text || report?.text) ?? report?.text ?? "";
  const text = reasonText(said, space);
  const picture = pictureOf(known?.result ?? report?.data);
  return html`<article class=${`card ${state} ${isSelected ? "selected" : ""}`} aria-label=${`Call of ${item.text}`}>
    <div class="card-head">
      <span class="dot" aria-hidden="true"></span>
      <${CallName} id=${item.id} session=${session}>${skillTitle(item.text, space)}<//>
      <${Badge} kind=${state}>${lookOf(state).word}<//>
      ${known ? html`<${Span} known=${known} now=${session.now} />` : html`<${Ago} utime=${item.utime} now=${session.now} />`}
      ${isOpen && html`<${CancelCall} id=${item.id} what=${item.text} session=${session} />`}
    </div>
    ${known && html`<p class="given" title=${givenText(known.arguments)}>${givenText(known.arguments)}</p>`}
    <p class="words">${text}</p>
    ${isOpen && known && html`<${Figures} progress=${known.progress} />`}
    <${Reports} reports=${reports.map((each) => ({ ...each, text: reasonText(each.text, space) }))} text=${text} now=${session.now} />
    ${picture && html`<${Picture} name=${picture} label=${text || "What the camera saw"} session=${session} />`}
    <${Details} id=${item.id} known=${known} report=${report} session=${session} />
  </article>`;
}, (before, next) => ["known", "bad", "isSelected", "connected"].every((name) => before[name] === next[name])
  && before.reports.length === next.reports.length && before.reports.at(-1)?.text === next.reports.at(-1)?.text);

/** The newest reports to the agent, except the text that the card shows now; the details have all updates. */
function Reports({ reports, text, now }) {
  const says = text.toLowerCase();
  const others = reports.filter((each, place) => each.text !== reports[place - 1]?.text && !says.startsWith(each.text.toLowerCase())).slice(-MAX_REPORTS);
  return others.length > 0 && html`<ol class="reports" aria-label="What it has reported">${others.map(({ utime, text: said }) =>
    html`<li key=${utime}>${said} <${Ago} utime=${utime} now=${now} /></li>`)}</ol>`;
}

/** The time for which a call has been running, or ran. */
function Span({ known, now }) {
  const text = useSecond(() => spanText(((known.closed ?? now()) - known.utime) / 1e6));
  return html`<span class="span">${text}</span>`;
}

function Figures({ progress }) {
  const figures = Object.entries(progress ?? {}).filter(([, value]) => typeof value === "number").slice(0, MAX_FIGURES);
  return html`<dl class="figures">${figures.map(([name, value]) => {
    const measure = measureOf(name);
    return html`<div key=${name}><dt>${titled(measure.title)}</dt><dd>${numberText(value, measure)}${measure.unit && html`<small>${unitText(measure)}</small>`}</dd></div>`;
  })}</dl>`;
}

/** Arguments, result and newest updates; the bridge is asked for a call that ended before the page was opened. */
function Details({ id, known, report, session }) {
  const [isOpen, become] = useState(false);
  const [asked, know] = useState(null);
  useEffect(() => {
    if (isOpen && !known && asked === null) askFor(id, session).then(know);
  }, [isOpen]);
  const call = known ?? asked;
  const result = known?.result ?? report?.data ?? asked?.result ?? null;
  return html`<details onToggle=${(event) => become(event.currentTarget.open)}>
    <summary>Details</summary>
    ${isOpen && html`
      ${known?.updates.length > 0 && html`<ol class="updates">${known.updates.map(({ utime, text }) => html`<li key=${utime}>
        <${Ago} utime=${utime} now=${session.now} /> ${text}</li>`)}</ol>`}
      ${call && html`<p class="label">Arguments</p><pre tabindex="0">${JSON.stringify(call.arguments, null, 2)}</pre>`}
      ${result !== null && html`<p class="label">Result</p><pre tabindex="0">${typeof result === "string" ? result : JSON.stringify(result, null, 2)}</pre>`}
      <p class="quiet">${call ? `${call.module} · for ${call.caller} · ` : ""}call <code>${id}</code></p>`}
  </details>`;
}

async function askFor(id, session) {
  try {
    const response = await session.monitor.get(`calls/${encodeURIComponent(id)}`);
    return response.ok ? await response.json() : null;
  } catch {
    return null; // the bridge does not answer: what is known is shown
  }
}
