/** The conversation itself. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "htm/preact";
import { Ago, Empty, memo } from "../parts.js";

export function Log({ agent, draft, now }) {
  const list = useRef(null);
  useStayAtEnd(list);
  const shown = agent.conversation.filter((entry) => entry.text && entry.role !== "progress"); // calls show theirs
  return html`<ol class="talk" ref=${list} tabindex="0" aria-label="Conversation, newest last">
    ${shown.length === 0 && !draft && html`<li><${Empty}>Nothing was said yet.<//></li>`}
    ${shown.map((entry) => html`<${Entry} key=${entry.number} entry=${entry} agent=${agent.agent} now=${now} />`)}
    ${draft && html`<li key="draft" class="assistant draft"><span class="who">${agent.agent}</span> writes<p>${draft.text}</p></li>`}
  </ol>`;
}

const Entry = memo(({ entry, agent, now }) => html`<li class=${`${entry.role} ${entry.is_error ? "bad" : ""}`}>
  <span class="who">${entry.role === "assistant" ? agent : entry.skill || entry.role}</span>${" "}
  ${entry.utime > 0 && html`<${Ago} utime=${entry.utime} now=${now} />`}<p>${entry.text}</p></li>`);

/** Keeps a list at its end, but where somebody has scrolled back in it. */
function useStayAtEnd(list) {
  const isBack = useRef(false);
  useLayoutEffect(() => {
    const element = list.current;
    const look = () => (isBack.current = element.scrollHeight - element.scrollTop - element.clientHeight > 24);
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (!isBack.current) list.current.scrollTop = list.current.scrollHeight;
  });
}
