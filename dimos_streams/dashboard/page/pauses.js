/** Pauses by others, which make of the button and the key that pause ones that let an agent go on. */

/** A press so soon after that, in ms, was meant for what was shown before. */
export const UNSEEN_MS = 700;
/** Maximum time, in ms, from an order of this page until the change that it brings about is reported. */
const OWN_MS = 3000;

export class Pauses {
  #modes = new Map();
  /** Times at which agents were first seen to be paused. */
  #begun = new Map();
  /** Times at which somebody at this page has paused agents, who may let them go on at once: each is for one change. */
  #ordered = new Map();

  /** Take what the run reports of its agents. @param {Record<string, {mode: string}|null>} agents by name */
  take(agents) {
    const now = performance.now();
    for (const [name, agent] of Object.entries(agents)) {
      const [before, mode] = [this.#modes.get(name), agent?.mode];
      if (mode === before) continue;
      this.#modes.set(name, mode);
      const isSeen = !before || now - this.#ordered.get(name) < OWN_MS;
      if (before === "running" || mode === "paused") this.#begun.set(name, isSeen ? -Infinity : now);
      this.#ordered.delete(name);
    }
  }

  /** Take an order of this page. */
  note({ command, agent, mode }) {
    if (command === "pause" || (command === "step" && mode === "on")) this.#ordered.set(agent, performance.now());
  }

  /** Return whether an order lets go on what another has paused unseen. */
  isUnseen({ command, agent }) {
    return command === "resume" && performance.now() - this.#begun.get(agent) < UNSEEN_MS;
  }
}
