/** Forms that have just come into the place of another one, for which a press was meant. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { UNSEEN_MS } from "../pauses.js";

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
