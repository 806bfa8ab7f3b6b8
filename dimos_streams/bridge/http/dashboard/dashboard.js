/**
 * The operator's page: shows what `WS /monitor` reports and sends commands (docs/monitor.md).
 *
 * `Link` keeps the connection, `Run` the state that it reports. The views are functions of these that make a new tree;
 * `show` brings the page into its form, so that focus, selections and half written texts stay. All that comes from
 * outside becomes text nodes and attribute values, never HTML.
 */

import { Link } from "./link.js";
import { headerView, noticesView, pageView } from "./page_view.js";
import { clipped, counted } from "./parts.js";
import { outcome, Run } from "./run.js";
import { show } from "./tree.js";

const RENDER_MS = 100;
const NOTICE_MS = 5_000;
const MAX_NOTICES = 4;

/** Puts connection, state and views together, and carries out what buttons say. */
class Dashboard {
  run = new Run();
  link = new Link((message) => this.take(message), () => this.renderSoon());
  chosen = "";
  everyStep = false;
  notices = [];
  #count = 0;
  #due = 0;

  /** Do what a button or form, the element `it`, says. */
  actions = {
    connect: () => this.link.connect(),
    stop_robot: (it) => this.#order("robots/stop", { robot: it.dataset.robot, reason: "on the operator's page" }),
    release_robot: (it) => this.#order("robots/release", { robot: it.dataset.robot }),
    cancel_all: () => this.#order("calls/cancel", { reason: "cancelled on the operator's page" }),
    token: (it) => this.#useToken(it.elements.token),
    choose: (it) => (this.chosen = it.dataset.agent),
    steps: () => (this.everyStep = !this.everyStep),
    dismiss: (it) => this.#dismiss(Number(it.dataset.id)),
    say: (it) => this.#say(it.dataset.agent, it.elements.text),
    pause: (it) => this.#ask({ command: "pause", agent: it.dataset.agent }),
    resume: (it) => this.#ask({ command: "resume", agent: it.dataset.agent }),
    stepping: (it) => this.#ask({ command: "step", agent: it.dataset.agent, mode: "on" }),
    step: (it) => this.#ask({ command: "step", agent: it.dataset.agent, mode: "once" }),
    undo: (it) => this.#ask({ command: "undo", agent: it.dataset.agent, count: 1 }),
    forget: (it) => this.#ask({ command: "forget", agent: it.dataset.agent }),
    abort: (it) => this.#ask({ command: "abort", agent: it.dataset.agent, rollback: false }),
    rollback: (it) => this.#ask({ command: "abort", agent: it.dataset.agent, rollback: true }),
    cancel: (it) => this.#ask({ command: "cancel", call_id: it.dataset.id }),
    set_skill: (it) => this.#setSkill(it.dataset.agent, it.dataset.id, it.ariaChecked !== "true"),
    approve: (it) => this.#decide(it, "approve"),
    reject: (it) => this.#decide(it, "reject"),
    drop: (it) => this.#decide(it, "delete"),
    modify: (it) => this.#withArguments(it, (given) => this.#decide(it, "approve", given)),
    amend: (it) => this.#withArguments(it, (given) => this.#amend(it, given)),
  };

  start() {
    this.#takeToken();
    for (const type of ["click", "submit"]) document.addEventListener(type, (event) => this.#act(event));
    this.render();
    this.link.connect();
  }

  take(message) {
    switch (message.type) {
      case "snapshot":
        this.run.drafts.clear();
        this.run.show(message.snapshot);
        break;
      case "change":
        this.run.show({ ...this.run.state, ...message.change });
        break;
      case "event":
        this.run.agentEvent(message.event);
        break;
      case "call":
        this.run.callEvent(message.event);
        break;
      case "gap":
        this.run.note("gap", `${counted(message.lost, "event")} came too fast and are not shown here`);
        break;
      case "reply":
      case "error":
        if (!this.link.answer(message)) this.notify(message.text, message.type === "error");
        break;
    }
    this.renderSoon();
  }

  renderSoon() {
    this.#due ||= setTimeout(() => this.render(), RENDER_MS);
  }

  render() {
    clearTimeout(this.#due);
    this.#due = 0;
    const context = {
      run: this.run,
      link: this.link,
      live: this.link.status === "live",
      chosen: this.chosen,
      everyStep: this.everyStep,
    };
    const asked = Object.values(this.run.state?.agents ?? {}).flatMap((agent) => agent.approvals).length;
    document.title = `${asked ? `(${asked}) ` : ""}dimos-streams`;
    document.body.classList.toggle("stale", !context.live);
    show(document.getElementById("top"), headerView(context));
    show(document.getElementById("page"), pageView(context));
    show(document.getElementById("notices"), noticesView(this.notices));
  }

  notify(text, bad) {
    const key = ++this.#count;
    this.notices = [...this.notices, { key, text: clipped(text), bad }].slice(-MAX_NOTICES);
    if (!bad) setTimeout(() => this.#dismiss(key), NOTICE_MS);
    this.renderSoon();
  }

  /** A token in the address moves to where no history and no bookmark keeps it. */
  #takeToken() {
    const token = new URLSearchParams(location.search).get("token")
      ?? new URLSearchParams(location.hash.slice(1)).get("token");
    if (token === null) return;
    this.link.token = token;
    history.replaceState(null, "", location.pathname);
  }

  #act(event) {
    const it = event.target.closest(event.type === "submit" ? "form" : "button[data-do]");
    if (event.type === "submit") event.preventDefault();
    if (!it) return;
    this.actions[it.dataset.do](it);
    this.render();
  }

  #useToken(field) {
    this.link.token = field.value.trim();
    field.value = "";
    this.link.connect();
  }

  #dismiss(key) {
    this.notices = this.notices.filter((notice) => notice.key !== key);
    this.renderSoon();
  }

  /** Whether it was carried out; what came of it is reported. */
  async #ask(command) {
    const answer = await this.link.ask(command);
    const isGood = answer.type === "reply";
    const isBad = !isGood || answer.result?.not_held?.length > 0 || answer.result?.held?.length === 0;
    // What was said is in the conversation.
    if (!isGood || command.command !== "say") this.notify(`${command.command}: ${outcome(answer)}`, isBad);
    return isGood;
  }

  async #order(path, body) {
    const report = await this.link.order(path, body);
    this.notify(report.text ?? report.detail, report.text === undefined || report.confirmed === false || report.unsaved);
  }

  async #say(agent, field) {
    const text = field.value;
    const isHeard = await this.#ask({ command: "say", agent, text });
    if (isHeard && field.value === text) field.value = "";
  }

  #setSkill(agent, skill, enabled) {
    return this.#ask({ command: "set_skill", agent, skill, enabled });
  }

  #decide(it, decision, given) {
    const { agent, id: approval } = it.dataset;
    const reason = it.closest("form").elements.reason.value;
    return this.#ask({ command: "decide", agent, approval, decision, reason, arguments: given });
  }

  #amend(it, given) {
    const { agent, id: approval } = it.dataset;
    return this.#ask({ command: "amend", agent, approval, arguments: given });
  }

  #withArguments(it, use) {
    const field = it.closest("form").elements.arguments;
    try {
      use(JSON.parse(field.value));
    } catch (error) {
      this.notify(`The arguments are not JSON: ${error.message}`, true);
      field.focus();
    }
  }
}

new Dashboard().start();
