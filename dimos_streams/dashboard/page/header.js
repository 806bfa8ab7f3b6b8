/** The top of the page: the connection, the robots, and the button that stops them. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { clockText, counted } from "./format.js";
import { Icon } from "./icons.js";
import { ErrorBoundary } from "./error_boundary.js";
import { Stopped } from "./run/stopped.js";
import { Unwell } from "./run/unwell.js";
import { robotsOf } from "./snapshot.js";
import { switchTheme, theme } from "./theme.js";
import { TransportBar } from "./transport/transport.js";

export function Header({ session }) {
  const { monitor, state } = session;
  const head = useRef(null);
  useHeight(head);
  return html`<header class="top" ref=${head}>
    <div class="bar">
      <h1><${Icon} name="robot" size=${20} /><span>dimos-streams</span></h1>
      <p class=${`link ${monitor.status}`} role="status">${statusText(session)}</p>
      <div class="robots">
        ${monitor.status === "lost" && html`<button type="button" onClick=${() => monitor.connect()}>Try now</button>`}
        <${ErrorBoundary} name="Robots" view=${RobotStates} given=${{ session }} of=${state} />
      </div>
      <div class="end">
        <p class="quiet watchers" title="Pages and terminals that watch this run">${monitor.status === "live" && state ? `${state.watchers.toLocaleString()} watching` : ""}</p>
        <${Theme} />
        <button type="button" class="plain icon-only" aria-label="Help" title="Help (?)" onClick=${() => session.help(true)}><${Icon} name="help" /></button>
        ${monitor.status !== "token" && !session.readOnly && html`<${Stop} order=${session.order} />`}
      </div>
    </div>
    ${session.transport && html`<${TransportBar} transport=${session.transport} />`}
    ${state && html`<${ErrorBoundary} name="Approvals" view=${Asking} given=${{ session }} of=${state} />`}
    ${state && html`<${ErrorBoundary} name="Stopped robots" view=${Stopped} given=${{ session }} of=${state} />`}
  </header>`;
}

/** A line that leads to what waits for a decision, where the conversation is below all else. */
function Asking({ session }) {
  const count = Object.values(session.state.agents).reduce((sum, { approvals }) => sum + approvals.length, 0);
  if (count === 0) return null;
  // The approval of an agent that is not shown has no form: the line of that agent says that it waits.
  const lead = () => (document.querySelector("form.approval") ?? document.querySelector(".panel.conversation"))?.scrollIntoView({ block: "center" });
  return html`<button type="button" class="asking" onClick=${lead}>${counted(count, "call")} ${count === 1 ? "waits" : "wait"} for approval</button>`;
}

/** The choice of robots, their batteries, and the modules that are not well. */
function RobotStates({ session }) {
  const { state } = session;
  return html`<${Robots} session=${session} />
    ${state && html`<${Batteries} robots=${state.robots} robot=${session.robot} />
      <${Unwell} modules=${state.modules} session=${session} />`}`;
}

/** Keep the CSS variable `--top` at the height of the head, in pixels. */
function useHeight(head) {
  useLayoutEffect(() => {
    const resized = new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--top", `${target.offsetHeight}px`));
    resized.observe(head.current);
    return () => resized.disconnect();
  }, []);
}

function statusText({ monitor, transport }) {
  const texts = {
    connecting: "Connecting …",
    live: transport ? `Recording${transport.about ? ` ${transport.about.name}` : ""}` : "Live",
    lost: monitor.since ? `Connection lost at ${clockText(monitor.since)}, trying again …` : "No connection yet, trying again …",
    ended: monitor.since && `The ${transport ? "view" : "run"} has ended at ${clockText(monitor.since)}`,
    refused: `The bridge refuses: ${monitor.refusal}`,
    token: "A token is needed",
  };
  return texts[monitor.status];
}

/** Return the order to stop a robot, or every one. It waits neither for the connection nor for an earlier press.
 * @returns {[boolean, () => Promise<void>]} whether one is under way, and how to give one */
function useStop(order, robot) {
  const [underWay, count] = useState(0);
  const stop = async () => {
    count((before) => before + 1);
    await order("robots/stop", { robot, reason: "on the operator's page" });
    count((before) => before - 1);
  };
  return [underWay > 0, stop];
}

function Stop({ order }) {
  const [isUnderWay, stop] = useStop(order, "");
  return html`<button type="button" class="stop" aria-label="Stop every robot" aria-busy=${String(isUnderWay)} onClick=${stop}>
    <${Icon} name="stop" />${isUnderWay ? "Stopping …" : html`<span>Stop<span class="wide"> every robot</span></span>`}</button>`;
}

/** A button that stops one of several robots; the others go on. */
function StopOne({ robot, order }) {
  const [isUnderWay, stop] = useStop(order, robot);
  return html`<button type="button" class="stop-one" aria-label=${`Stop ${robot}`} title=${`Stop ${robot} only`} aria-busy=${String(isUnderWay)}
    onClick=${stop}><${Icon} name="stop" /></button>`;
}

/** Buttons to choose the robot that is shown, if there are several. */
function Robots({ session }) {
  if (!session.state) return null;
  const canStop = session.monitor.status !== "token" && !session.readOnly;
  const robots = robotsOf(session.state);
  if (robots.length === 0) return null;
  return html`<nav aria-label="Robots">${["", ...robots].map((name) => html`<span key=${name} class="one"><button type="button"
    aria-pressed=${String(name === session.robot)} onClick=${() => session.choose(name)}>${name || "All"}</button>${name
    && canStop && html`<${StopOne} robot=${name} order=${session.order} />`}</span>`)}</nav>`;
}

function Batteries({ robots, robot: chosen }) {
  const known = Object.entries(robots).filter(([name, robot]) => robot.battery !== null && (!chosen || name === chosen));
  return known.map(([name, robot]) => {
    const percent = Math.round(robot.battery * 100);
    const kind = percent < 20 ? "bad" : "";
    return html`<p key=${name} class=${`battery quiet ${kind}`}>${name ? `${name} ` : ""}<span class="hidden">battery </span>
      <i class="cell" aria-hidden="true"><i style=${{ width: `${percent}%` }}></i></i> ${percent} %</p>`;
  });
}

function Theme() {
  const [, show] = useState(0);
  const change = () => {
    switchTheme();
    show((count) => count + 1);
  };
  const label = `Colours: ${theme()}`;
  return html`<button type="button" class="plain icon-only" aria-label=${label} title=${label} onClick=${change}><${Icon} name=${theme()} /></button>`;
}
