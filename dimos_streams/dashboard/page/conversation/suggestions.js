/** Suggestions of what to say, for a conversation in which nothing was said yet. */

import { bareSkill, namespaceOf } from "../format.js";
import { html } from "../html.js";

const EXAMPLES = [
  ["follow_person", "follow the person in the red shirt"],
  ["look_out_for", "look out for a person in red"],
  ["observe", "what do you see"],
  ["move", "drive forward 0.5 meters"],
  ["turn", "turn left 90 degrees"],
  ["patrol", "patrol"],
];

export function Suggestions({ session: { state, readOnly } }) {
  const available = state.skills.filter((skill) => skill.available);
  const offered = new Set(available.map((skill) => bareSkill(skill.name, namespaceOf(skill.module))));
  const examples = EXAMPLES.filter(([name]) => offered.has(name)).slice(0, 4);
  if (readOnly) return html`<p class="empty">Nothing was said yet.</p>`;
  return html`<div class="suggestions">
    <p>Nothing was said yet. Tell the robot what to do${examples.length > 0 ? ", for instance:" : "."}</p>
    ${examples.map(([name, text]) => html`<button key=${name} type="button" onClick=${() => write(text)}>${text}</button>`)}
  </div>`;
}

function write(text) {
  const field = document.getElementById("say");
  field.value = text;
  field.focus();
}
