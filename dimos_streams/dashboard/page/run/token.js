/** The form that asks for the run's token. */

import { html } from "../html.js";

export function TokenForm({ session }) {
  const connect = (event) => {
    event.preventDefault();
    const field = event.currentTarget.elements.token;
    session.useToken(field.value.trim());
    field.value = "";
  };
  return html`<form class="panel entry" onSubmit=${connect}>
    <label for="token">${session.monitor.token ? "This is not the run's token." : "The run's token"}</label>
    <input id="token" name="token" type="password" autocomplete="off" required />
    <button>Connect</button>
    <p class="quiet">It is kept for this tab only, until the tab is closed.</p>
  </form>`;
}
