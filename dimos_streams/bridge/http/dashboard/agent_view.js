/** One agent: what it does, is asked to do, and waits for. */

import { button, counted, empty, namespaceOf, time, written } from "./parts.js";
import { robotView } from "./robot_view.js";
import { h } from "./tree.js";

export function agentView(name, agent, context) {
  const space = namespaceOf(name);
  const robot = Object.hasOwn(context.run.state.robots, space) && robotView(space, context);
  if (!agent) {
    return h("section", { class: "panel", "data-key": name }, h("h2", {}, name), robot,
      empty("It does not report: its process starts or has ended."));
  }
  return h("section", { class: "panel agent", "data-key": name },
    h("div", { class: "line" }, h("h2", {}, name), h("span", { class: `badge ${agent.state}` }, agent.state),
      h("span", { class: `badge ${agent.mode}` }, agent.mode)),
    agent.hold && holdView(agent.hold),
    agent.warnings.map((text) => h("p", { class: "bad", role: "status", "data-key": text }, text)),
    controlsView(name, agent, context.live),
    agent.approvals.map((approval) => approvalView(name, approval, context.live)),
    waitingView(agent),
    conversationView(agent, context.run.drafts.get(name)),
    h("form", { class: "say", "data-do": "say", "data-agent": name },
      h("input", { name: "text", "aria-label": `Say to ${name}`, placeholder: "Say something …", maxlength: 4000,
        autocomplete: "off", required: true }),
      h("button", { disabled: !context.live || agent.state === "closed" }, "Say")),
    robot,
    missionsView(agent, context),
    agent.plan && planView(agent.plan),
    h("p", { class: "quiet" }, factsText(agent)));
}

/** Only the velocity gates know whether the robot is kept still. */
export function holdView(hold) {
  const held = hold.held.length > 0 && hold.not_held.length === 0;
  const missing = hold.not_held.map((gate) => `${gate.gate}: ${gate.text}`).join("; ");
  const text = held ? `held by ${hold.held.join(", ")}`
    : `NOT held: ${missing || "no velocity gate was heard, nothing confirms that a robot stands"}`;
  return h("p", { class: held ? "held" : "held bad", role: held ? "status" : "alert" }, text);
}

/** Buttons that would do nothing are disabled. */
function controlsView(name, agent, live) {
  const on = live && agent.state !== "closed";
  const busy = agent.state !== "idle" || agent.missions.length + agent.calls.length + agent.queue.waiting > 0;
  const control = (label, action, enabled, title, kind = "") =>
    button(label, action, { "data-agent": name, disabled: !(on && enabled), title, class: kind });
  return h("div", { class: "controls", role: "group", "aria-label": `Control ${name}` },
    control("Pause", "pause", agent.mode !== "paused", "Hold the robot still and begin nothing new"),
    control("Resume", "resume", agent.mode !== "running", "Go on, and leave step mode"),
    control("Step mode", "stepping", agent.mode !== "stepping", "Let calls begin one by one"),
    control("Step", "step", agent.mode === "stepping" && agent.waiting_calls.length > 0, "Let the oldest call go"),
    control("Undo", "undo", agent.state === "idle", "Take back the newest call"),
    control("Forget", "forget", true, "Begin a new conversation; the record stays"),
    control("Abort", "abort", busy, "End all missions and their calls", "danger"),
    control("Abort and roll back", "rollback", busy, "End them and take back what they have done", "danger"));
}

function waitingView(agent) {
  return agent.waiting_calls.length > 0 && h("div", {}, h("h3", {}, "Waiting for a step"),
    h("ol", {}, agent.waiting_calls.map((call) => h("li", {}, written(call)))));
}

function approvalView(name, approval, live) {
  const to = { "data-agent": name, "data-id": approval.id, disabled: !live };
  const json = JSON.stringify(approval.arguments, null, 2);
  return h("form", { class: "approval", "data-key": approval.id, "data-do": "approve", ...to, disabled: false },
    h("h3", {}, "May it run ", h("code", {}, approval.skill), "?"),
    approval.reason && h("p", {}, approval.reason),
    h("pre", { tabindex: 0 }, json),
    approval.hidden_characters > 0 && h("p", {}, `${approval.hidden_characters} characters are not shown: `,
      h("code", {}, `dimos-streams approvals ${approval.id}`)),
    h("p", { class: "quiet" }, "asked at ", time(approval.created_utime),
      approval.expires_utime !== null && [", denied by itself at ", time(approval.expires_utime)]),
    h("details", {}, h("summary", {}, "Other arguments"),
      h("textarea", { name: "arguments", rows: Math.min(12, json.split("\n").length + 1), spellcheck: "false",
        "aria-label": "Arguments as JSON" }, json),
      h("div", { class: "controls" },
        button("Approve with these", "modify", to), button("Only change", "amend", to))),
    h("input", { name: "reason", placeholder: "Reason, which the model is shown", "aria-label": "Reason",
      maxlength: 4000, autocomplete: "off" }),
    h("div", { class: "controls" }, h("button", { class: "good", ...to }, "Approve"),
      button("Reject", "reject", { ...to, class: "danger" }),
      button("Delete", "drop", { ...to, title: "Reject this once; the same call asks again" })));
}

function conversationView(agent, draft) {
  const shown = agent.conversation.filter((entry) => entry.text && entry.role !== "progress"); // calls show theirs
  const entries = shown.map((entry) =>
    h("li", { "data-key": entry.number, class: `${entry.role}${entry.is_error ? " bad" : ""}` },
      h("span", { class: "who" }, entry.role === "assistant" ? agent.agent : entry.skill || entry.role), " ",
      entry.utime > 0 && time(entry.utime), h("p", {}, entry.text)));
  const writing = draft && h("li", { "data-key": "draft", class: "assistant draft" },
    h("span", { class: "who" }, agent.agent), " writes", h("p", {}, draft.text));
  return h("div", {}, h("h3", {}, "Conversation"),
    entries.length || draft
      ? h("ol", { class: "log", tabindex: 0 }, entries, writing)
      : empty("Nothing was said yet."));
}

/** A mission is ended by cancelling the call that it began with, as long as that is open. */
function missionsView(agent, { run, live }) {
  const open = new Set(run.state.calls.map((call) => call.call_id));
  return agent.missions.length > 0 && h("div", {}, h("h3", {}, "Missions"), h("ul", { class: "rows" },
    agent.missions.map((mission) => h("li", { class: "line", "data-key": mission.id }, time(mission.utime),
      h("span", { class: "text" }, mission.text),
      open.has(mission.id) && button("Cancel", "cancel", { "data-id": mission.id, disabled: !live,
        "aria-label": `Cancel the mission “${mission.text}”` })))));
}

function planView(plan) {
  return h("div", {}, h("h3", {}, `Plan: ${plan.goal} `, h("span", { class: "badge" }, plan.state)),
    plan.reason && h("p", {}, plan.reason),
    h("ol", {}, plan.steps.map((step) => h("li", { class: step.used ? "quiet" : "" },
      written(step), step.used && " begun"))));
}

function factsText(agent) {
  const { requests, input_tokens: input, output_tokens: output, cost } = agent.usage;
  const spent = cost === null ? "cost not known" : `$${cost.toFixed(4)}`;
  const waiting = agent.queue.waiting > 0 ? `queue ${agent.queue.waiting} of ${agent.queue.capacity}` : "";
  const turn = agent.state === "idle" ? "" : `answer ${agent.iteration} of this turn`;
  const tokens = `${input.toLocaleString()} tokens in, ${output.toLocaleString()} out`;
  return [`Model ${agent.model}`, counted(requests, "request"), tokens, spent, turn, waiting,
    `without a console: ${agent.on_console_loss}`].filter(Boolean).join(" · ");
}
