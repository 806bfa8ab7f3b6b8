/** The help: keys, signs and hints. */

import { html } from "./html.js";
import { Dialog } from "./dialog.js";
import { KEYS, RECORDING_KEYS } from "./keys.js";

/** Signs and words that the page uses: their marks, names and meanings. */
const SIGNS = [
  ["robot", "Robot", "with an arrow to where it looks, and the way that it came"],
  ["scan", "Scan", "what its laser hits now; black is what scans have found before, white is free floor"],
  ["person", "Person", "in the colour of their clothes, where they were seen; dashed if they are out of sight"],
  ["followed", "Followed", "who is followed, in the picture and on the map"],
  ["zone", "Zone", "hatched red: nobody drives there without an operator’s approval"],
  ["drives", "Drives", "below the timeline: one call drives a robot at a time, and the others are refused"],
];

export function Help({ session }) {
  const close = () => session.help(false);
  const keys = session.transport ? RECORDING_KEYS : KEYS;
  // At the top, since the button gets the focus and the dialog is scrolled to it.
  const corner = html`<button type="button" onClick=${close}>Close</button>`;
  return html`<${Dialog} title="Help" kind="help" close=${close} corner=${corner}>
    <h3>Keys</h3>
    <dl class="keys">${keys.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <h3>What is shown</h3>
    <dl class="signs">
      ${SIGNS.map(([kind, name, text]) => html`<div key=${name}><dt><i class=${`mark ${kind}`} aria-hidden="true"></i>${name}</dt><dd>${text}</dd></div>`)}
    </dl>
    <h3>Good to know</h3>
    ${session.transport ? html`<p>A recording is looked at: nothing can be ordered. What is not in it is said in the notes beside its slider.</p>` : html`<ul>
      <li><b>Stop every robot</b> holds all robots still until somebody presses <b>Release</b>. It waits for nothing, and works while the page is not connected. The red button beside a robot’s name stops that one.</li>
      <li><b>Pause</b> holds an agent's robot still and lets nothing new begin; <b>Abort</b> ends its missions. That the robot <b>stands still</b> is said when the robot itself has confirmed it.</li>
      <li>A click on a call highlights it everywhere; a click on the map sends the robot there, after asking.</li>
      <li>While a page is open, agents count as watched: what they do when the last one closes is their setting <code>on_console_loss</code>.</li>
    </ul>`}
  <//>`;
}
