/** What the monitor has reported, bounded. */

import { clipped, listed } from "./parts.js";

const MAX_EVENTS = 200;
const MAX_TRAIL = 400;
const MAX_DRAFT = 4000;

/** Kinds of agents' events that the conversation and the calls show as well. They are seen on request, like the
 * operators' own calls. */
const STEPS = new Set([
  "input", "update", "iteration_start", "content", "call_start", "call_complete", "answer", "usage", "call_run",
  "call_open", "call_end", "result",
]);

/** What the monitor has reported, bounded. */
export class Run {
  /** The monitor's snapshot. */
  state = null;
  events = [];
  /** The same with every step. */
  steps = [];
  /** Of each robot, by namespace. */
  trails = new Map();
  /** Answers that are being written, by agent. */
  drafts = new Map();
  #count = 0;

  show(state) {
    this.state = state;
    for (const [name, robot] of Object.entries(state.robots)) this.#follow(name, robot);
    for (const [name, agent] of Object.entries(state.agents)) {
      const draft = this.drafts.get(name);
      if (draft && agent.number >= draft.until) this.drafts.delete(name);
    }
  }

  agentEvent(event) {
    this.#draft(event);
    const { utime, agent: who, kind, data } = event;
    const bad = kind === "error" || data.is_error === true;
    this.#log({ utime, who, kind, text: rendered(data), bad }, STEPS.has(kind));
  }

  callEvent(event) {
    const kind = event.data.outcome ?? event.type;
    const bad = event.type === "close" && !["completed", "cancelled"].includes(kind);
    const isCommand = agentsOf(this.state).some(({ name }) => name === event.module);
    this.#log({ utime: event.utime, who: event.skill, kind, text: event.text, bad }, isCommand);
  }

  note(kind, text) {
    this.#log({ utime: Date.now() * 1000, who: "", kind, text, bad: true }, false);
  }

  #log(line, isStep) {
    const logged = { ...line, key: ++this.#count, text: clipped(line.text) };
    for (const log of isStep ? [this.steps] : [this.steps, this.events]) {
      log.unshift(logged);
      log.length = Math.min(log.length, MAX_EVENTS);
    }
  }

  /** An answer is whole when its event has come; until the state has it too, the draft stays. */
  #draft(event) {
    const draft = this.drafts.get(event.agent);
    if (event.kind === "content" && !event.data.reasoning) {
      const before = draft && draft.until === Infinity ? draft.text : "";
      this.drafts.set(event.agent, { text: (before + event.data.text).slice(-MAX_DRAFT), until: Infinity });
    } else if (draft && ["answer", "iteration_start", "stop"].includes(event.kind)) {
      draft.until = Math.min(draft.until, event.number);
    }
  }

  #follow(name, robot) {
    if (robot.x === null || robot.y === null) return;
    const trail = this.trails.get(name) ?? [];
    const last = trail.at(-1);
    const moved = last ? Math.hypot(robot.x - last.x, robot.y - last.y) : Infinity;
    if (moved < 0.02) return;
    const kept = moved < 1 ? trail.slice(1 - MAX_TRAIL) : []; // not a way that it went, but a new start
    this.trails.set(name, [...kept, { x: robot.x, y: robot.y }]);
  }
}

/** What became of a command. */
export function outcome(answer) {
  const { command, result, text, errors } = answer;
  if (answer.type === "error") {
    const fields = Object.entries(errors ?? {}).map(([field, problem]) => `${field}: ${problem}`).join("; ");
    return text.includes(fields) ? text : `${text}; ${fields}`;
  }
  if (command === "decide" || command === "amend") return rendered({ approval: result });
  if (command !== "undo") return text;
  return result.map((undone) => `${undone.skill}: ${undone.how}, ${undone.text}`).join("; ") || "there is nothing";
}

/** What an event's data say, on a line. */
function rendered(data) {
  if (data.approval) return `${data.approval.skill}(${listed(data.approval.arguments)}): ${data.approval.state}`;
  if (data.plan) return `${data.plan.goal}: ${data.plan.state}`;
  return [data.phase, data.reason, data.text].filter(Boolean).join(": ") || listed(data);
}

/** By name; null for an agent that offers its skills but has not reported (yet). */
export function agentsOf(state) {
  const offering = state.skills.filter((skill) => skill.agent);
  const names = new Set([...Object.keys(state.agents), ...offering.map((skill) => skill.module)]);
  return [...names].sort().map((name) => ({ name, agent: state.agents[name] ?? null }));
}
