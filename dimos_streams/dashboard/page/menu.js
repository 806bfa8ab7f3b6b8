/** Buttons behind a button. */

import { useEffect, useRef } from "preact/hooks";
import { html } from "htm/preact";

export function Menu({ label, title, children }) {
  const menu = useRef(null);
  useEffect(() => {
    const close = (event) => {
      if (menu.current?.open && !(event.type === "pointerdown" && menu.current.contains(event.target))) menu.current.open = false;
    };
    const pressed = (event) => event.key === "Escape" && close(event);
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", pressed);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", pressed);
    };
  }, []);
  return html`<details class="menu" ref=${menu}><summary role="button" aria-label=${title}>${label}</summary>
    <div class="menu-items" onClick=${() => (menu.current.open = false)}>${children}</div></details>`;
}
