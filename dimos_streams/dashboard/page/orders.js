/** The orders that a page gives to a run. What becomes of each is shown as a notice. */

import { isMission, missionTitle } from "./calls/families.js";
import { namespaceOf, skillTitle, titled } from "./format.js";
import { withoutGates } from "./held.js";
import { outcome } from "./event_texts.js";

export class Orders {
  #monitor;
  #notify;
  #openCall;
  /** The newest command, until it is answered. @type {{text: string, answer: Promise<object>}|null} */
  #asked = null;

  /**
   * @param {import("./link/monitor.js").Monitor} monitor
   * @param {(text: string, bad: boolean, ends?: string) => void} notify as `Session.notify`
   * @param {(id: string) => object|undefined} openCall gives an open call by its id
   */
  constructor(monitor, notify, openCall) {
    this.#monitor = monitor;
    this.#notify = notify;
    this.#openCall = openCall;
  }

  /**
   * Send a command, and show its result as a notice. A second press before the answer sends nothing.
   * @returns {Promise<object>} its `reply` or `error`
   */
  async ask(command) {
    const text = JSON.stringify(command);
    if (this.#asked?.text === text) return this.#asked.answer;
    const asked = (this.#asked = { text, answer: this.#ask(command) });
    const answer = await asked.answer;
    if (this.#asked === asked) this.#asked = null;
    return answer;
  }

  async #ask(command) {
    const answer = await this.#monitor.ask(command);
    const isGood = answer.type === "reply";
    const isBad = !isGood || answer.result?.not_held?.length > 0 || answer.result?.held?.length === 0 || Boolean(answer.result?.unkept);
    // `say` needs no notice: the text appears in the conversation.
    if (isGood && command.command === "cancel") this.#cancelling(command.call_id);
    else if (!isGood || command.command !== "say") this.#notify(reportText(command.command, outcome(answer)), isBad);
    return answer;
  }

  #cancelling(id) {
    const call = this.#openCall(id);
    if (!call) return; // it has ended already
    const what = isMission(call) ? missionTitle(call) : skillTitle(call.skill, namespaceOf(call.module)).toLowerCase();
    this.#notify(`Cancelling ${what} …`, false, id);
  }

  /** Send an order in an HTTP request of its own. @returns {Promise<object>} the bridge's report, or a problem */
  async order(path, body) {
    const report = await this.#monitor.order(path, body);
    const text = withoutGates(report.text ?? report.detail ?? "");
    const isBad = report.detail !== undefined || report.confirmed === false || Boolean(report.unsaved);
    if (text) this.#notify(text, isBad);
    return report;
  }
}

/** Return the result of a command with its name before it, unless the text begins with that: `aborted …`. */
function reportText(command, text) {
  return text.startsWith(command) ? text[0].toUpperCase() + text.slice(1) : `${titled(command)}: ${text}`;
}
