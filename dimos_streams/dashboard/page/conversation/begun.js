/** Texts that somebody has begun to write. A field may go meanwhile: another agent is looked at, or the bridge restarts. */

import { useLayoutEffect } from "preact/hooks";

const begun = new Map();

/**
 * Give a field its text again when it is back.
 * @param {import("preact").RefObject<HTMLInputElement>} field @param {string} name its own among all
 */
export function useBegun(field, name) {
  useLayoutEffect(() => {
    const { current } = field;
    if (!current) return undefined;
    current.value = begun.get(name) ?? "";
    return () => begun.set(name, current.value);
  }, [name]);
}

/** Forget a text that was sent, wherever it is by now. */
export function sent(field, name, text) {
  if (field.current?.value === text) field.current.value = "";
  if (begun.get(name) === text) begun.delete(name);
}
