/** A dialog over the page. It leaves the page's head free, so that Stop is always within reach. */

import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { html } from "./html.js";

/** @param {{title: string, kind?: string, close: () => void, corner?: unknown, children: unknown}} given closed by Esc and a
 * click beside it, too; `corner` is beside its title */
export function Dialog({ title, kind = "", close, corner, children }) {
  const id = useId();
  const section = useRef(null);
  const newest = useRef(close);
  newest.current = close;
  // A layout effect, so that a dialog that is closed at once also restores what it has set aside.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const comeBack = setAside(section.current.parentElement);
    section.current.querySelector("button").focus();
    const pressed = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      newest.current();
    };
    document.addEventListener("keydown", pressed, true);
    return () => {
      document.removeEventListener("keydown", pressed, true);
      comeBack();
      before?.focus?.();
    };
  }, []);
  return html`<div class="veil" onClick=${(event) => event.target === event.currentTarget && close()}>
    <section ref=${section} class=${`dialog ${kind}`} role="dialog" aria-labelledby=${id}><div class="title"><h2 id=${id}>${title}</h2>${corner}</div>${children}</section>
  </div>`;
}

/** Make everything behind a veil inert, except the page's head and its notices. @returns {() => void} ends that */
function setAside(veil) {
  const behind = [];
  for (let at = veil; at !== document.body; at = at.parentElement) {
    behind.push(...[...at.parentElement.children].filter((each) => each !== at && !each.matches("header.top, .notices, [inert]")));
  }
  for (const element of behind) element.inert = true;
  return () => {
    for (const element of behind) element.inert = false;
  };
}
