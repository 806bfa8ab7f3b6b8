/** An operator's controls of an agent. */

import { html } from "../html.js";
import { Menu } from "../menu.js";

/** Buttons to control an agent; those that would do nothing are disabled. */
export function Controls({ name, agent, session: { connected, ask } }) {
  const on = connected && agent.state !== "closed";
  const busy = agent.state !== "idle" || agent.missions.length + agent.calls.length + agent.queue.waiting > 0;
  const control = (label, command, enabled, title, kind = "") => html`<button type="button" class=${kind} title=${title}
    disabled=${!(on && enabled)} onClick=${() => ask(command)}>${label}</button>`;
  const steps = agent.mode === "stepping";
  const pause = () => control("Pause", { command: "pause", agent: name }, true, "Hold the robot still and begin nothing new (Space)");
  const resume = () => control("Resume", { command: "resume", agent: name }, true, "Go on, and leave step mode", "primary");
  return html`<div class="controls" role="group" aria-label=${`Control ${name}`}>
    ${steps && control("Step", { command: "step", agent: name, mode: "once", waiting: agent.waiting_calls[0]?.id }, agent.waiting_calls.length > 0, "Let the oldest call go")}
    ${agent.mode === "running" ? pause() : resume() /* one element, so that it keeps the focus when pressed */}
    ${control("Abort", { command: "abort", agent: name, rollback: false }, busy, "End all missions and their calls", "danger")}
    <${Menu} label="⋯" title=${`More for ${name}`}>
      ${steps && pause()}
      ${control("Step mode", { command: "step", agent: name, mode: "on" }, !steps, "Let calls begin one by one")}
      ${control("Undo", { command: "undo", agent: name, count: 1 }, agent.state === "idle", "Take back the newest call")}
      ${control("Forget", { command: "forget", agent: name }, true, "Begin a new conversation; the record stays")}
      ${control("Abort and roll back", { command: "abort", agent: name, rollback: true }, busy,
        "End them and take back what they have done", "danger")}
    <//>
  </div>`;
}
