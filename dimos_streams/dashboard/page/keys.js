/** Keyboard shortcuts, of one key each. While somebody types, only Esc works. */

import { useEffect } from "preact/hooks";

/** Selects the elements in which somebody types, or did until a moment ago (`focus.js`). */
const TYPED = "input, textarea, select, [contenteditable], [data-typed]";

const HELP = [
  ["?", "Show or hide this help"],
  ["Esc", "Close the help, let go of the selected call or of a field"],
];
/** The keys on the page of a recording. */
export const RECORDING_KEYS = [
  ["Space", "Play, or pause"],
  [", .", "To the event before, to the next event"],
  ...HELP,
];

export const KEYS = [
  ["Space", "Pause the agents that are shown, or let them go on"],
  ["/", "Say something"],
  ...HELP,
  ["← ↑ ↓ →", "In the timeline: from call to call; in the map: move it"],
];

/** @param {import("./session.js").Session} session */
export function useKeys(session) {
  useEffect(() => {
    const pressed = (event) => act(event, session);
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [session]);
}

function act(event, session) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape") {
    letGo(event, session);
    return;
  }
  if (event.defaultPrevented || event.target.closest(TYPED)) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("say")?.focus();
  } else if (event.key === "?") {
    event.preventDefault();
    session.help(!session.helps);
  } else if (session.transport && (event.key === "," || event.key === ".")) {
    session.transport.step(event.key === ",");
  } else if (event.key === " " && !session.helps && !event.target.closest("button, summary, a, [role=slider]")) {
    event.preventDefault();
    if (!event.repeat) pauseOrResume(session);
  }
}

function letGo(event, session) {
  const field = event.target.closest(TYPED);
  if (field) field.blur();
  else if (session.selected !== null) session.select(null);
}

/** Pause the agents that run, or resume all if none does; play or pause a recording. */
function pauseOrResume(session) {
  if (session.transport) {
    session.transport.toggle();
    return;
  }
  if (session.monitor.status !== "live") return;
  const agents = session.agents().filter(({ agent }) => agent && agent.state !== "closed");
  const running = agents.filter(({ agent }) => agent.mode !== "paused");
  for (const { name } of running) session.ask({ command: "pause", agent: name });
  if (running.length > 0) return;
  const resumes = agents.map(({ name }) => ({ command: "resume", agent: name }));
  const unseen = resumes.filter(session.isUnseen); // meant to pause one of them, it lets none go on
  for (const resume of unseen.length > 0 ? unseen : resumes) session.ask(resume);
}
