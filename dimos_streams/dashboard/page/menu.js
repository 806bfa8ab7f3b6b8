/** A button that opens a menu of buttons. */

import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";

export function Menu({ label, title, children }) {
  const menu = useFolding();
  return html`<details class="menu" ref=${menu}><summary role="button" aria-label=${title}>${label}</summary>
    <div class="menu-items" onClick=${() => fold(menu.current)}>${children}</div></details>`;
}

/**
 * Close a `details` element that lies over the page by Esc, and when somebody turns to anything else.
 * @returns {import("preact").RefObject<HTMLDetailsElement>} for its element
 */
export function useFolding() {
  const details = useRef(null);
  useEffect(() => {
    const turned = ({ target }) => {
      if (details.current && !details.current.contains(target)) details.current.open = false;
    };
    const pressed = (event) => event.key === "Escape" && details.current && fold(details.current, event.target);
    const ends = new AbortController();
    const { signal } = ends;
    document.addEventListener("pointerdown", turned, { signal });
    document.addEventListener("focusin", turned, { signal });
    document.addEventListener("keydown", pressed, { signal });
    return () => ends.abort();
  }, []);
  return details;
}

/** Close a `details` element; the focus moves from what is hidden then to its summary. */
function fold(details, focused = document.activeElement) {
  if (!details.open) return;
  details.open = false;
  if (details.contains(focused)) details.querySelector("summary").focus();
}
