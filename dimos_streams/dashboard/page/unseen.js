/** Presses that were meant for what was shown a moment before. */

import { useLayoutEffect, useRef } from "preact/hooks";

/** Nobody reads and presses within so many ms. */
const UNSEEN_MS = 700;

/** Pauses by others, which make of the button and the key that pause ones that let an agent go on. */
export class Pauses {
  #modes = new Map();
  /** Times at which agents were first seen to be paused. */
  #begun = new Map();
  /** The agents that somebody at this page has paused, who may let them go on at once. */
  #own = new Set();

  /** Take what the run reports of its agents, by their names. */
  take(agents) {
    for (const [name, agent] of Object.entries(agents)) {
      const [before, mode] = [this.#modes.get(name), agent?.mode];
      if (mode === before) continue;
      this.#modes.set(name, mode);
      if (mode === "running") this.#own.delete(name);
      else if (before === "running" || mode === "paused") this.#begun.set(name, before ? performance.now() : -Infinity);
    }
  }

  /** Take an order of this page. @returns {boolean} whether it lets go on what another has paused unseen */
  isUnseen({ command, agent }) {
    if (command === "pause" || command === "step") this.#own.add(agent);
    return command === "resume" && !this.#own.has(agent) && performance.now() - this.#begun.get(agent) < UNSEEN_MS;
  }
}

/** Time at which the newest of the forms that are gone went. */
let gone = -Infinity;

/** @param {string} id what the form is for @returns {() => boolean} whether nobody can have read the form yet */
export function useReplaced(id) {
  const begun = useRef(0);
  useLayoutEffect(() => {
    begun.current = performance.now();
    return () => (gone = performance.now());
  }, [id]);
  return () => performance.now() - begun.current < UNSEEN_MS && begun.current - gone < UNSEEN_MS;
}
