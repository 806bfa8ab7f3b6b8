/** What the page can do, in a dialog. */

import { useEffect, useRef } from "preact/hooks";
import { html } from "htm/preact";
import { KEYS } from "./keys.js";

export function Help({ session }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby="help-title" onClose=${() => session.help(false)}>
    <h2 id="help-title">Help</h2>
    <h3>Keys</h3>
    <dl class="keys">${KEYS.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <h3>Good to know</h3>
    <ul>
      <li><b>Stop every robot</b> holds all robots still until somebody presses <b>Release</b>. It waits for nothing, and works while the page is not connected.</li>
      <li>While a page is open, agents count as watched: what they do when the last one closes is their setting <code>on_console_loss</code>.</li>
    </ul>
    <button type="button" autofocus onClick=${() => session.help(false)}>Close</button>
  </dialog>`;
}
