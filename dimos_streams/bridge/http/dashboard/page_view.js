/** The page as a whole, and what belongs to the whole run. */

import { agentView } from "./agent_view.js";
import { button, clockText, counted, empty, namespaceOf, panel, time, written } from "./parts.js";
import { robotView } from "./robot_view.js";
import { agentsOf } from "./run.js";
import { h } from "./tree.js";

/** @typedef {{run: Run, link: Link, live: boolean, chosen: string, everyStep: boolean}} Context */

export function headerView({ run, link, chosen }) {
  const names = run.state ? agentsOf(run.state).map(({ name }) => name) : [];
  return [
    h("h1", {}, "dimos-streams"),
    h("p", { class: `link ${link.status}`, role: "status" }, statusText(link)),
    link.status === "lost" && button("Try now", "connect"),
    link.status === "live" && run.state && h("p", { class: "quiet" }, counted(run.state.watchers, "console")),
    link.status !== "token" && button("Stop every robot", "stop_robot", { class: "stop", "data-robot": "" }),
    names.length > 1 && h("nav", { "aria-label": "Agents" }, ["", ...names].map((name) =>
      button(name || "All", "choose", { "data-agent": name, "aria-pressed": String(name === chosen) }))),
  ];
}

function statusText(link) {
  const texts = {
    connecting: "Connecting …",
    live: "Live",
    lost: `Connection lost, since ${clockText(link.since)}. Trying again …`,
    refused: `The bridge refuses: ${link.refusal}`,
    token: "A token is needed",
  };
  return texts[link.status];
}

function tokenView(link) {
  return h("form", { class: "panel entry", "data-do": "token" },
    h("label", { for: "token" }, link.token ? "This is not the run's token." : "The run's token"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
    h("button", {}, "Connect"),
    h("p", { class: "quiet" }, "It is kept for this tab only, until the tab is closed."));
}

/** @param {Context} context */
export function pageView(context) {
  const { state } = context.run;
  if (context.link.status === "token") return tokenView(context.link);
  if (!state) return h("p", { class: "quiet" }, "Nothing is known of the run yet.");
  const isChosen = (module) => !context.chosen || namespaceOf(module) === namespaceOf(context.chosen);
  const agents = agentsOf(state).filter(({ name }) => !context.chosen || name === context.chosen);
  const spaces = new Set(agents.map(({ name }) => namespaceOf(name)));
  const lone = Object.keys(state.robots).filter((name) => !spaces.has(name) && !context.chosen);
  return [
    stoppedView(state.stopped),
    h("div", { class: "agents", "data-count": agents.length + lone.length, "data-key": "agents" },
      lone.map((name) => h("section", { class: "panel", "data-key": name }, h("h2", {}, name || "Robot"),
        robotView(name, context))),
      agents.map(({ name, agent }) => agentView(name, agent, context))),
    h("div", { class: "rest", "data-key": "rest" },
      h("div", {}, callsView(context, isChosen), eventsView(context)),
      h("div", {}, skillsView(context, agents, isChosen),
        modulesView(state.modules.filter((module) => isChosen(module.name))))),
  ];
}

/** The robots that an operator has stopped, with the gates that do not confirm it. */
function stoppedView(stopped) {
  return stopped.stops.length > 0 && h("section", { class: "panel stopped", "data-key": "stopped", role: "alert" },
    h("ul", { class: "rows" }, stopped.stops.map(({ robot, utime, reason }) => h("li", { "data-key": robot || "*" },
      h("b", {}, robot || "Every robot"), " is stopped since ", time(utime), reason && `: ${reason}`, " ",
      button("Release", "release_robot", { "data-robot": robot })))),
    stopped.not_held.map(({ gate, text }) => h("p", { class: "bad", "data-key": gate }, `NOT held: ${gate}: ${text}`)),
    stopped.held.length > 0 && h("p", {}, `held by ${stopped.held.join(", ")}`));
}

function callsView({ run, live, chosen }, isChosen) {
  const missions = new Set(Object.values(run.state.agents).flatMap((agent) => agent.missions.map(({ id }) => id)));
  const calls = run.state.calls.filter((call) => isChosen(call.module) && !missions.has(call.call_id));
  const skills = new Map(calls.map((call) => [call.call_id, call.skill]));
  const leases = Object.entries(run.state.leases).filter(([, holder]) => !chosen || skills.has(holder));
  return panel("Calls",
    calls.length === 0 && empty("No call is open."),
    calls.length > 0 && button("Cancel all", "cancel_all", { disabled: !live }),
    run.state.not_ending.length > 0 && h("ul", { class: "rows bad" }, run.state.not_ending.map((late) =>
      h("li", { "data-key": late.call_id }, h("code", {}, late.skill), " was asked to end at ", time(late.since_utime),
        " and goes on ", h("span", { class: "quiet" }, late.call_id)))),
    calls.length > 0 && h("ul", { class: "calls" }, inFamilies(calls).map((call) => callView(call, live))),
    leases.length > 0 && [h("h3", {}, "Leases"), h("ul", { class: "rows" }, leases.map(([resource, holder]) =>
      h("li", { "data-key": resource }, h("code", {}, resource), ` is held by ${skills.get(holder) ?? "call"} `,
        h("span", { class: "quiet" }, holder))))]);
}

/** Calls, each followed by those that belong to it: their ids begin with its id and a tilde. */
function inFamilies(calls) {
  const places = new Map(calls.map((call, place) => [call.call_id, String(place).padStart(6, "0")]));
  const lineOf = (id) => id.split("~").map((_, end, parts) => places.get(parts.slice(0, end + 1).join("~")) ?? "").join(" ");
  return calls.toSorted((one, other) => (lineOf(one.call_id) < lineOf(other.call_id) ? -1 : 1));
}

function callView(call, live) {
  const depth = call.call_id.split("~").length - 1;
  return h("li", { "data-key": call.call_id, class: depth > 0 && `child deep${Math.min(depth, 4)}` },
    h("div", { class: "line" },
      written(call, 160),
      call.state !== "open" && h("span", { class: "badge" }, call.state),
      button("Cancel", "cancel", { "data-id": call.call_id, disabled: !live, "aria-label": `Cancel ${call.skill}` })),
    h("p", {}, call.text),
    h("p", { class: "quiet" }, time(call.requested_utime),
      ` · for ${call.caller} · ${call.module} · ${call.call_id}`));
}

function eventsView({ run, everyStep }) {
  const events = everyStep ? run.steps : run.events;
  return panel("Events",
    button("Every step", "steps", { "aria-pressed": String(everyStep) }),
    events.length === 0 && empty("Nothing has happened since this page was opened."),
    events.length > 0 && h("ol", { class: "events", tabindex: 0 }, events.map((event) =>
      h("li", { "data-key": event.key, class: event.bad ? "bad" : "" }, time(event.utime), " ",
        h("b", {}, event.who), " ", h("i", {}, event.kind), " ", event.text))));
}

function skillsView({ run, live }, agents, isChosen) {
  const skills = run.state.skills.filter((skill) => skill.audience === "everyone" && isChosen(skill.module));
  const reporting = agents.filter(({ agent }) => agent);
  const gone = reporting.flatMap(({ name, agent }) => agent.disabled_skills
    .filter((disabled) => !skills.some((skill) => skill.name === disabled))
    .map((disabled) => h("li", { "data-key": `${name} ${disabled}` }, h("div", { class: "line" },
      h("code", {}, disabled), "offered by nobody", switchView(name, agent, disabled, live)))));
  return panel("Skills", skills.length + gone.length === 0 ? empty("No module offers a skill.") : h("ul", { class: "long", tabindex: 0 },
    skills.map((skill) => skillView(skill, reporting.filter(({ name }) => isNear(skill.module, name)), live)), gone));
}

/** Whether an agent's model is offered a module's skills: those of its namespace, and of none. */
function isNear(module, agent) {
  const space = namespaceOf(agent);
  return !space || !module.includes("/") || module.startsWith(`${space}/`);
}

function skillView(skill, agents, live) {
  return h("li", { "data-key": skill.name, class: skill.available ? "" : "off" },
    h("div", { class: "line" }, h("code", {}, skill.name),
      !skill.available && h("span", { class: "badge failed" }, "not available"),
      agents.map(({ name, agent }) => switchView(name, agent, skill.name, live, agents.length > 1))),
    h("p", { class: "quiet" }, skill.description.split("\n", 1)[0]));
}

function switchView(name, agent, skill, live, isOneOfSeveral = false) {
  if (agent.withheld_skills.includes(skill)) {
    return h("span", { class: "quiet", "data-key": `${name} ${skill}`, title: "The setting skills does not list it" },
      `${isOneOfSeveral ? `${name}: ` : ""}not given`);
  }
  const on = !agent.disabled_skills.includes(skill);
  return button(`${isOneOfSeveral ? `${name}: ` : ""}${on ? "enabled" : "disabled"}`, "set_skill", {
    role: "switch", "aria-checked": String(on), "aria-label": `${name} may use ${skill}`, disabled: !live,
    "data-agent": name, "data-id": skill, "data-key": `${name} ${skill}`,
  });
}

function modulesView(modules) {
  return panel("Modules", h("ul", { class: "modules long", tabindex: 0 }, modules.map((module) =>
    h("li", { "data-key": module.name, class: "line" },
      h("b", {}, module.name),
      h("span", { class: `badge ${module.alive && module.health === "ok" ? "ok" : "failed"}` }, module.health),
      module.state["velocity_gate"] && h("span", {}, gateText(module.state["velocity_gate"])),
      h("span", { class: "quiet" }, `pid ${module.pid}`)))));
}

/** What a velocity gate says of itself. */
function gateText(gate) {
  if (!gate.listens) return "does not listen to /hold";
  const holds = Array.isArray(gate.holds) ? gate.holds : [];
  return holds.length > 0 ? `holds for ${holds.join(", ")}` : "holds for nobody";
}

export function noticesView(notices) {
  return notices.map((notice) => h("p", { "data-key": notice.key, class: notice.bad ? "bad" : "" },
    h("span", {}, notice.text), button("✕", "dismiss", { "data-id": notice.key, "aria-label": "Dismiss" })));
}
