/** Presses that were meant for what was shown a moment before. */

import { useLayoutEffect } from "preact/hooks";

/** Nobody reads and presses within so many ms. */
const UNSEEN_MS = 700;

/** Maximum time, in ms, from an order of this page until the change that it brings about is reported. */
const OWN_MS = 3000;

/** Pauses by others, which make of the button and the key that pause ones that let an agent go on. */
export class Pauses {
  #modes = new Map();
  /** Times at which agents were first seen to be paused. */
  #begun = new Map();
  /** Times at which somebody at this page has paused agents, who may let them go on at once: each is for one change. */
  #ordered = new Map();

  /** Take what the run reports of its agents, by their names. */
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

/** The number of forms that are shown. */
let count = 0;
/** Time at which the newest of the forms that are gone went. */
let gone = -Infinity;
/** Time at which a form last came into the place of another one, or came or went beside one: then the others move. */
let moved = -Infinity;

/** @param {string} id what the form is for @returns {() => boolean} whether nobody can have read the form yet */
export function useReplaced(id) {
  useLayoutEffect(() => {
    const begun = performance.now();
    if (count > 0 || begun - gone < UNSEEN_MS) moved = begun;
    count += 1;
    return () => {
      count -= 1;
      gone = performance.now();
      if (count > 0) moved = gone;
    };
  }, [id]);
  return () => performance.now() - moved < UNSEEN_MS;
}
