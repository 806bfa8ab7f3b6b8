/**
 * The hub's page: robots, their states, and the newest calls. Whatever robots say becomes text, never HTML, in which
 * characters that hide or reorder are written out.
 */

import { shown } from "./texts.js";

const EVERY_MS = 2_000;
const REPORTS_WITHIN_MS = 5_000;
/** What orders have done, by robot: whether it is stopped now, and until when that counts more than its last report. */
const ordered = new Map();
const byId = (id) => document.getElementById(id);

async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...(options.body && { "Content-Type": "application/json" }), ...(token && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) byId("sign-in").hidden = false;
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.detail ?? `HTTP ${answer.status}`);
  byId("sign-in").hidden = true;
  return content;
}

function make(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = shown(text);
  element.className = kind;
  return element;
}

function button(text, onClick, kind = "") {
  const element = make("button", text, kind);
  element.type = "button";
  element.addEventListener("click", onClick);
  return element;
}

function since(seconds) {
  if (seconds === null) return "never heard of";
  if (seconds < 90) return `heard of ${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `heard of ${Math.round(seconds / 60)} min ago`;
  return `heard of ${Math.round(seconds / 3600)} h ago`;
}

function say(id, text) {
  byId(id).textContent = shown(text);
}

/** Note what robots answered to an order. A stop's answer names calls, a release's says whether it changed anything. */
function note(replies) {
  for (const [name, reply] of Object.entries(replies)) {
    const stopped = "calls" in reply || (reply.changed ? false : null);
    if (stopped !== null) ordered.set(name, { stopped, until: performance.now() + REPORTS_WITHIN_MS });
  }
}

function isStopped({ name, stopped }) {
  const known = ordered.get(name);
  return known?.until > performance.now() ? known.stopped : stopped;
}

async function order(path, robot, about = async () => ({})) {
  say("notice", `${path} …`);
  try {
    const body = { ...(robot && { robot }), ...(await about()) };
    const report = await ask(path, { method: "POST", body: JSON.stringify(body) });
    note(report.robots);
    say("notice", report.text);
  } catch (error) {
    say("notice", error.message);
  }
  await show();
}

/** Release a robot from the stops that there are now: what comes late must not undo a newer one. */
async function release({ name }) {
  await order("robots/release", name, async () => {
    const { stopped } = await ask(`robots/${encodeURIComponent(name)}/robots`);
    return { seen: stopped.stops.map(({ utime }) => utime) };
  });
}

function row(robot, openCalls) {
  const line = document.createElement("tr");
  const state = document.createElement("td");
  const stopped = isStopped(robot);
  const word = stopped ? "stopped" : robot.status;
  const kind = stopped ? "failed" : word === "ok" ? "ok" : "paused";
  state.append(make("span", word, `badge ${kind}`), ...robot.notes.map((note) => make("p", note)));
  const actions = document.createElement("td");
  // Stop stays where it is: who presses it twice must not release the robot.
  if (stopped) actions.append(button("Release", () => release(robot)));
  actions.append(button("Stop", () => order("robots/stop", robot.name), "stop"));
  line.append(
    make("td", robot.name),
    make("td", robot.connected ? "connected" : since(robot.heard_s), robot.connected ? "good-text" : "bad"),
    state,
    make("td", String(openCalls)),
    make("td", String(robot.skills)),
    make("td", robot.to_come === null ? "?" : String(robot.to_come)),
    make("td", robot.version),
    actions,
  );
  return line;
}

function call(view) {
  const line = make("li", "", view.state === "closed" && view.outcome !== "completed" ? "bad" : "");
  line.append(make("b", `${view.robot} ${view.skill}`), shown(` ${view.outcome ?? view.state}: ${view.text}`));
  return line;
}

async function show() {
  try {
    const [robots, calls, health] = [await ask("robots"), await ask("calls?limit=20"), await ask("healthz")];
    // Robots report how many calls are open every few seconds; their events come at once.
    const open = Map.groupBy(await ask("calls?state=open&limit=1000"), (view) => view.robot);
    byId("robots").hidden = robots.length === 0;
    byId("none").hidden = robots.length !== 0;
    byId("robots").tBodies[0].replaceChildren(...robots.map((robot) => row(robot, open.get(robot.name)?.length ?? 0)));
    byId("calls").replaceChildren(...calls.reverse().map(call));
    byId("no-calls").hidden = calls.length !== 0;
    say("state", health.database === "ok" ? `${health.counts.connected} of ${health.counts.robots} connected` : health.database);
    byId("state").className = health.database === "ok" ? "quiet" : "bad";
  } catch (error) {
    say("state", error.message);
    byId("state").className = "bad";
  }
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value);
  show();
});
byId("stop").addEventListener("click", () => order("robots/stop", ""));
byId("stop").disabled = false;
byId("unloaded").remove();
show();
setInterval(show, EVERY_MS);
