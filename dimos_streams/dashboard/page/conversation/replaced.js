/** Forms that have just come into the place of another one, for which a press was meant. */

import { useLayoutEffect } from "preact/hooks";
import { UNSEEN_MS } from "../pauses.js";

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
