/** The line in which the operator says something. */

import { useRef } from "preact/hooks";
import { html } from "../html.js";
import { sent, useBegun } from "./begun.js";

export function Say({ name, agent, isOneOfSeveral, session }) {
  const field = useRef(null);
  const own = `say ${name}`;
  useBegun(field, own);
  const say = async (event) => {
    event.preventDefault();
    const text = field.current.value;
    const answer = await session.ask({ command: "say", agent: name, text });
    if (answer.type === "reply") sent(field, own, text);
  };
  return html`<form class="say" onSubmit=${say}>
    <input id="say" ref=${field} name="text" aria-label=${`Say to ${name}`} placeholder=${isOneOfSeveral ? `Say to ${name} …` : "Say something …"} maxlength="4000" autocomplete="off" required />
    <button class="primary" disabled=${!session.connected || agent.state === "closed"}>Say</button>
  </form>`;
}
