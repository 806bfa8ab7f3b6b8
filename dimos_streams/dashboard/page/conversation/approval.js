/** The form of an approval: a call that waits for an operator's decision. */

import { useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { measureOf, namespaceOf, skillTitle, spanText, unitText } from "../format.js";
import { parseExactly } from "../link/exact_json.js";
import { Ago, useSecond } from "../times.js";
import { shownJson } from "../texts.js";
import { useReplaced } from "../unseen.js";
import { useBegun } from "./begun.js";

/** The arguments that somebody has begun to change, by the approval's id, each with the revision that was seen. */
const changes = new Map();

export function Approval({ name, approval, session }) {
  const { connected, readOnly, now } = session;
  const form = useRef(null);
  const reason = useRef(null);
  useBegun(reason, `reason ${approval.id}`);
  const [given, show] = useState(changes.get(approval.id) ?? null);
  const json = shownJson(approval.arguments);
  const { id, revision } = approval;
  const isReplaced = useReplaced(id);
  const ask = (command) => {
    if (!isReplaced()) session.ask(command);
    else session.notify("This approval has just come in the place of another one: read it, and press again", false);
  };
  const decide = (decision, seen, changed) => ask({ command: "decide", agent: name, approval: id, decision, revision: seen,
    reason: reason.current.value, arguments: changed });
  const amend = (changed, seen) => ask({ command: "amend", agent: name, approval: id, arguments: changed, revision: seen });
  const write = (change) => {
    changes.set(id, change);
    show(change);
  };
  const withArguments = (use) => {
    try {
      use(parseExactly(given?.json ?? json), given?.revision ?? revision);
    } catch (error) {
      session.notify(`The arguments are not JSON: ${error.message}`, true);
      form.current.elements.arguments.focus();
    }
  };
  const submit = (event) => {
    event.preventDefault();
    decide("approve", revision);
  };
  return html`<form class="approval" ref=${form} onSubmit=${submit} aria-label=${`Approval of ${approval.skill}`}>
    <h3 title=${approval.skill}>May it do this: ${skillTitle(approval.skill, namespaceOf(name))}?</h3>
    ${approval.reason && html`<p>${approval.reason}</p>`}
    <${Values} values=${approval.arguments} />
    ${approval.hidden_characters > 0 && html`<p>${approval.hidden_characters} characters are not shown:
      <code> dimos-streams approvals ${approval.id}</code></p>`}
    <${Countdown} approval=${approval} now=${now} />
    ${!readOnly && html`
      <input name="reason" ref=${reason} placeholder="Why? The agent is told" aria-label="Reason" maxlength="4000" autocomplete="off" />
      <div class="controls">
        <button class="good" disabled=${!connected}>Approve</button>
        <button type="button" class="danger" disabled=${!connected} onClick=${() => decide("reject")}>Reject</button>
        <button type="button" disabled=${!connected} title="Reject this once; the same call asks again"
          onClick=${() => decide("delete")}>Delete</button>
      </div>
      ${!approval.hidden_characters && html`<details open=${given !== null}><summary>Other arguments</summary>
        <textarea name="arguments" rows=${Math.min(12, json.split("\n").length + 1)} spellcheck="false" aria-label="Arguments as JSON"
          value=${given?.json ?? json} onInput=${(event) => write({ json: event.currentTarget.value, revision })}></textarea>
        <div class="controls">
          <button type="button" disabled=${!connected} onClick=${() => withArguments((changed, seen) => decide("approve", seen, changed))}>Approve with these</button>
          <button type="button" disabled=${!connected} onClick=${() => withArguments(amend)}>Only change</button>
        </div>
      </details>`}`}
  </form>`;
}

/** The arguments of the call that is asked for. */
function Values({ values }) {
  const given = Object.entries(values);
  if (given.length === 0) return html`<p class="quiet">Without arguments.</p>`;
  return html`<dl class="values">${given.map(([name, value]) => {
    const measure = measureOf(name);
    const [title, unit] = typeof value === "number" ? [measure.title, unitText(measure)] : [name.replaceAll("_", " "), ""];
    return html`<dt key=${`${name} name`} title=${name}>${title}</dt>
      <dd key=${name}>${typeof value === "string" ? value : html`<code>${JSON.stringify(value)}</code>${unit}`}</dd>`;
  })}</dl>`;
}

/** The time that is left for a decision. */
function Countdown({ approval, now }) {
  useSecond();
  const asked = html`asked <${Ago} utime=${approval.created_utime} now=${now} />`;
  if (approval.expires_utime === null) return html`<p class="quiet">${asked} · waits as long as it takes</p>`;
  const left = Math.max(0, approval.expires_utime - now());
  const part = Math.min(1, left / (approval.expires_utime - approval.created_utime));
  return html`<div><p class="quiet">${asked} · refused on its own in <b>${spanText(left / 1e6)}</b></p>
    <div class="bar" aria-hidden="true"><i style=${{ width: `${part * 100}%` }}></i></div></div>`;
}
