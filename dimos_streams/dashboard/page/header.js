/** The top of the page: the connection, the robots, and the button that stops them. */

import { useState } from "preact/hooks";
import { html } from "htm/preact";
import { clockText, counted, namespaceOf } from "./format.js";
import { agentsOf } from "./store.js";
import { switchTheme, theme } from "./theme.js";

/** @param {import("./session.js").Context} context */
export function Header(context) {
  const { session, state } = context;
  const { monitor } = session;
  return html`<header class="top">
    <h1>dimos-streams</h1>
    <p class=${`link ${monitor.status}`} role="status">${statusText(monitor)}</p>
    ${monitor.status === "lost" && html`<button type="button" onClick=${() => monitor.connect()}>Try now</button>`}
    <${Robots} session=${session} state=${state} />
    ${monitor.status === "live" && state && html`<p class="quiet watchers">${counted(state.watchers, "console")}</p>`}
    <${Theme} />
    <button type="button" class="plain" aria-label="Help" title="Help (?)" onClick=${() => session.help(true)}>?</button>
    ${monitor.status !== "token" && !session.readOnly && html`<button type="button" class="stop" onClick=${() =>
      session.order("robots/stop", { robot: "", reason: "on the operator's page" })}>Stop every robot</button>`}
  </header>`;
}

function statusText(monitor) {
  const texts = {
    connecting: "Connecting …",
    live: "Live",
    lost: `Connection lost, since ${clockText(monitor.since)}. Trying again …`,
    refused: `The bridge refuses: ${monitor.refusal}`,
    token: "A token is needed",
  };
  return texts[monitor.status];
}

/** Which robot is shown, where there are several. */
function Robots({ session, state }) {
  if (!state) return null;
  const spaces = new Set([...agentsOf(state).map(({ name }) => namespaceOf(name)), ...Object.keys(state.robots)]);
  spaces.delete("");
  if (spaces.size < 2) return null;
  return html`<nav aria-label="Robots">${["", ...[...spaces].sort()].map((name) => html`<button key=${name} type="button"
    aria-pressed=${String(name === session.robot)} onClick=${() => session.choose(name)}>${name || "All"}</button>`)}</nav>`;
}

function Theme() {
  const [, show] = useState(0);
  const change = () => {
    switchTheme();
    show((count) => count + 1);
  };
  return html`<button type="button" class="plain" aria-label=${`Colours: ${theme()}`} title=${`Colours: ${theme()}`} onClick=${change}>◐</button>`;
}
