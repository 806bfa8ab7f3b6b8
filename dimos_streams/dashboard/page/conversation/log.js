/** The list of what was said and done in a conversation. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { Approval } from "./approval.js";
import { CallCard } from "./call_card.js";
import { Echoes } from "./echoes.js";
import { itemsOf } from "./items.js";
import { Suggestions } from "./suggestions.js";
import { Waiting } from "./waiting.js";
import { memo } from "../memo.js";
import { Ago } from "../times.js";
import { counted, namespaceOf, skillTitle } from "../format.js";
import { reasonText } from "../reasons.js";

export function Log({ name, agent, session }) {
  const { run } = session;
  const list = useRef(null);
  const isBack = useStayAtEnd(list);
  useShowSelected(list, session.selected);
  const entries = run.talks.get(name);
  const draft = run.drafts.get(name);
  const echoes = Echoes.of(entries);
  const items = useMemo(() => itemsOf(entries, run.calls, agent), [entries, run.callsChanged, agent.approvals]);
  const isWriting = Boolean(draft) && !echoes.begins(draft.text);
  const isThinking = agent.state === "streaming" && !agent.retry && !isWriting;
  return html`<div class="talk-frame">
    <ol class="talk" ref=${list} tabindex="0" aria-label="What was said and done, newest last" aria-live="polite" aria-relevant="additions">
      ${items.map((item) => html`<${Shown} key=${item.key} item=${item} name=${name} agent=${agent.agent} session=${session} />`)}
      ${isWriting && html`<li key="draft" class="said assistant draft"><p class="who"><b>${agent.agent}</b> writes</p><p class="bubble">${draft.text}</p></li>`}
      ${agent.waiting_calls.length > 0 && html`<li key="waiting"><${Waiting} name=${name} agent=${agent} session=${session} /></li>`}
      ${isThinking && html`<li key="thinking" class="said assistant thinking" aria-label=${`${agent.agent} thinks`}><p class="bubble"><i></i><i></i><i></i></p></li>`}
      ${items.length === 0 && !isWriting && html`<li key="empty"><${Suggestions} session=${session} /></li>`}
    </ol>
    ${isBack && html`<button type="button" class="to-end" onClick=${() => (list.current.scrollTop = list.current.scrollHeight)}>
      ${agent.approvals.length > 0 ? `May it do this: ${skillTitle(agent.approvals.at(-1).skill, namespaceOf(name))}? ↓` : "Newest ↓"}</button>`}
  </div>`;
}

function Shown({ item, name, agent, session }) {
  if (item.kind === "call") {
    return html`<li class="call" data-call=${item.id}><${CallCard} item=${item} agent=${agent} known=${item.call} report=${item.report} reports=${item.reports} bad=${item.bad}
      isSelected=${session.selected === item.id} connected=${session.connected} session=${session} /></li>`;
  }
  if (item.kind === "approval") return html`<li class="asks"><${Approval} name=${name} approval=${item.approval} session=${session} /></li>`;
  return html`<${Said} item=${item} text=${item.text} bad=${item.bad} agent=${agent} now=${session.now} />`;
}

const Said = memo(({ item, agent, now }) => {
  const { kind, utime, text, report, bad } = item;
  const time = utime > 0 && html`<${Ago} utime=${utime} now=${now} />`;
  if (kind === "operator" || kind === "assistant") {
    return html`<li class=${`said ${kind}`}><p class="who"><b>${kind === "operator" ? "You" : agent}</b> ${time}</p><p class="bubble">${text}</p></li>`;
  }
  if (kind === "notes") {
    return html`<li class="note"><details><summary>${counted(item.notes.length, "earlier note")}</summary>
      ${item.notes.map((each) => html`<p key=${each.key}>${each.text} <${Ago} utime=${each.utime} now=${now} /></p>`)}</details></li>`;
  }
  if (kind === "note") return html`<li class=${`note ${bad ? "bad" : ""}`}><p>${text} ${time}</p></li>`;
  return html`<li class=${`refusal ${bad ? "bad" : ""}`}><p><b>${skillTitle(text, namespaceOf(agent))}</b> ${bad ? "was refused" : "answered"}: ${reasonText(report.text, namespaceOf(agent))} ${time}</p></li>`;
}, sameSaid);

/** Return whether two items say the same: items are made anew each time, but what was said does not change. */
function sameSaid(before, next) {
  return before.text === next.text && before.bad === next.bad && before.agent === next.agent;
}

/** Scroll the list, but not the page, so that a call that was selected elsewhere is in view. */
function useShowSelected(list, selected) {
  useLayoutEffect(() => {
    const row = selected === null ? null : list.current.querySelector(`[data-call="${CSS.escape(selected)}"]`);
    if (!row) return;
    const [frame, place] = [list.current.getBoundingClientRect(), row.getBoundingClientRect()];
    if (place.top < frame.top) list.current.scrollTop += place.top - frame.top - 8;
    else if (place.bottom > frame.bottom) list.current.scrollTop += Math.min(place.bottom - frame.bottom, place.top - frame.top) + 8;
  }, [selected]);
}

/** Keep a list scrolled to its end, unless somebody has scrolled back. @returns whether somebody has */
function useStayAtEnd(list) {
  const [isBack, become] = useState(false);
  const back = useRef(false);
  useLayoutEffect(() => {
    const element = list.current;
    const look = () => {
      back.current = element.scrollHeight - element.scrollTop - element.clientHeight > 24;
      become(back.current);
    };
    const stay = () => {
      if (!back.current) element.scrollTop = element.scrollHeight;
    };
    const resized = new ResizeObserver(stay);
    resized.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    element.addEventListener("toggle", stay, true);
    element.addEventListener("load", stay, true);
    return () => resized.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!back.current) list.current.scrollTop = list.current.scrollHeight;
  });
  return isBack;
}
