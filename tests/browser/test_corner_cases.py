"""What the page's functions give for values at their bounds, and for what seldom happens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.script_modules import ScriptModules
from tests.browser.test_timeline import BEGAN, MISSION, STORY, S, begun, said

_EACH = "(m, given) => given.map((each) => m.{}(each))"


def test_a_decision_is_one_by_its_own_name_only(script_modules: ScriptModules) -> None:
    calls: list[dict[str, Any]] = [
        {"skill": "decide", "module": "agent", "caller": "me", "arguments": {"decision": decision}, "state": "open"}
        | {"fraction": None, "end": None, "ticks": []}
        for decision in ("approve", "constructor", "toString", "__proto__")
    ]
    labels = script_modules("timeline/words.js", "(m, calls) => calls.map((call) => m.labelOf(call))", calls)
    assert labels[0] == "Approved"
    assert all(label.startswith("Decide · ") for label in labels[1:]), labels


def test_a_duration_is_rounded_before_it_is_cut_into_units(script_modules: ScriptModules) -> None:
    spans = [9.94, 9.96, 59.4, 59.7, 119.7, 3599.8, 7260.0]
    took = script_modules("timeline/scale.js", _EACH.format("tookText"), [each * S for each in spans])
    assert took == ["9.9 s", "10 s", "59 s", "1 min", "2 min", "1 h 0 min", "2 h 1 min"]
    ages = script_modules("format.js", _EACH.format("agoText"), [59.4, 59.7, 3569, 3571, 84_500, 84_700])
    assert ages == ["59 s ago", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "1 d ago"]


def test_updates_of_a_call_with_the_most_of_them_stay_in_order(script_modules: ScriptModules) -> None:
    late = 403
    entries = [begun(1, "c", 0)]
    entries += [said(offset, "c", "update", offset) for offset in range(2, 406) if offset != late]
    entries += [said(late, "c", "update", late)]
    fold = """(m, given) => {
        const log = new m.CallLog();
        for (const { offset, event } of given) log.take(offset, event);
        return log.calls.get("c").ticks.map(({ offset }) => offset);
    }"""
    offsets = script_modules("timeline/calls.js", fold, entries)
    assert offsets == sorted(offsets)
    assert offsets[-3:] == [403, 404, 405]


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ("new Response('<html>Bad gateway</html>', { status: 502, statusText: 'Bad Gateway' })", "502 Bad Gateway"),
        ("Response.json({ detail: 'this host is not served' }, { status: 403 })", "this host is not served"),
    ],
)
def test_who_is_refused_by_a_proxy_tries_again(script_modules: ScriptModules, answer: str, refusal: str) -> None:
    found = script_modules(
        "link/monitor.js",
        f"""async ({{ Monitor }}) => {{
            const plain = globalThis.WebSocket;
            let tries = 0;
            globalThis.WebSocket = class extends EventTarget {{
              constructor() {{ super(); tries += 1; setTimeout(() => this.onclose?.(new Event("close"))); }}
              close() {{}}
              send() {{}}
            }};
            try {{
              const monitor = new Monitor(() => 0, () => 0);
              monitor.get = async () => {answer};
              monitor.connect();
              while (tries < 2) await new Promise((done) => setTimeout(done, 20));
              return monitor.refusal;
            }} finally {{
              globalThis.WebSocket = plain;
            }}
        }}""",
    )
    assert found == refusal


def test_what_was_missed_while_a_page_is_read_is_read_behind_it(script_modules: ScriptModules) -> None:
    look = """async (m, given) => {
        const { CallLog } = await import(`${given.url}/calls.js`);
        const log = new CallLog();
        for (const { offset, event } of given.known) log.take(offset, event);
        let isRefused = false;
        const release = [];
        const pages = [[], [...given.known, ...given.missed]];
        const get = async () => {
          await new Promise((done) => release.push(done));
          const page = isRefused ? null : pages.shift();
          return page ? Response.json(page) : new Response("", { status: 503 });
        };
        const history = new m.History(log, get, () => 0);
        const letGo = async () => {
          while (release.length === 0) await new Promise((done) => setTimeout(done, 5));
          release.shift()();
        };
        const reading = history.reach(-1);
        await history.catchUp(() => given.now, true);
        await letGo();
        await letGo();
        await reading;
        const offsets = log.calls.get("c2").ticks.map(({ offset }) => offset);
        isRefused = true;
        const failing = history.catchUp(() => given.now, true);
        await letGo();
        await failing;
        return { offsets, breaks: log.breaks.map(({ text }) => text) };
    }"""
    given: dict[str, Any] = {"known": STORY, "missed": [said(12, "c2", "update", 8)], "now": BEGAN + 9 * S}
    found = script_modules(
        "timeline/history.js", look, given | {"url": script_modules.page.url + "dashboard/timeline"}
    )
    assert found["offsets"] == [12]
    assert found["breaks"][-1] == "what happened meanwhile can't be read"


@pytest.mark.parametrize(
    ("robot", "band"),
    [
        ("a", {"robot": "a", "text": "paused"}),
        ("a", {"robot": None, "released": ["b"], "text": "stopped"}),
        ("a/arm", {"robot": "a", "text": "stopped"}),
    ],
)
def test_each_of_several_robots_says_beside_its_name_that_it_was_paused_or_is_stopped(
    script_modules: ScriptModules, robot: str, band: dict[str, object]
) -> None:
    entries = [
        begun(offset, f"{each}-1", 0, **(MISSION | {"module": f"{each}/agent"}))
        for offset, each in enumerate((robot, "b"), start=1)
    ]
    draw = """async (m, given) => {
        const load = (name) => import(`${given.url}/${name}.js`);
        const [{ laidOut }, { draw }, { ROW }] = [await load("layout"), await load("draw"), await load("places")];
        const log = new m.CallLog();
        for (const { offset, event } of given.entries) log.take(offset, event);
        const g = new OffscreenCanvas(1000, 300).getContext("2d");
        const texts = [];
        const write = g.fillText.bind(g);
        g.fillText = (text, x, y) => { texts.push([text, Math.floor(y / ROW)]); write(text, x, y); };
        const band = { ...given.band, from: given.began, to: null, tone: "warn" };
        const view = { from: given.began, to: given.began + 10e6 };
        draw(g, { layout: laidOut([...log.calls.values()]), view, width: 1000, height: 300, scroll: 0,
          now: given.began + 9e6, until: Infinity, selected: null, cursor: null, hovered: null, breaks: [],
          bands: [band], knownFrom: given.began, before: "", colour: () => "rgb(0 0 0)" });
        const rowOf = (wanted) => texts.filter(([text]) => text === wanted).map(([, row]) => row);
        return [rowOf(given.band.text), rowOf(given.robot)];
    }"""
    url = script_modules.page.url + "dashboard/timeline"
    said, heading = script_modules(
        "timeline/calls.js", draw, {"url": url, "entries": entries, "began": BEGAN, "robot": robot, "band": band}
    )
    assert len(said) == 1
    assert said == heading


def test_a_timeline_knows_who_was_released_from_a_stop(script_modules: ScriptModules) -> None:
    look = """({ Board }, stopped) => {
        const board = new Board({ run: { state: { stopped, agents: {} } } });
        return board.bands.map(({ robot, released }) => [robot, released]);
    }"""
    stops = [{"robot": "", "utime": 1}, {"robot": "ida", "utime": 1}]
    found = script_modules("timeline/board.js", look, {"stops": stops, "released": ["rex"]})
    assert found == [[None, ["rex"]], ["ida", []]]


def test_an_obstacle_is_looked_for_in_the_odometrys_frame_and_a_zone_in_its_own(
    script_modules: ScriptModules,
) -> None:
    zone = {"name": "lab", "restricted": True, "polygon": [[10, 10], [12, 10], [12, 12], [10, 12]]}
    look = """(m, zone) => {
        const scene = { zones: [zone], waypoints: [], goal: null, path: [], frame_id: "map" };
        const state = { scene: { "": scene }, skills: [], agents: {}, calls: [], leases: {}, modules: [],
          stopped: { stops: [] } };
        const robot = { name: "", occupancy: { at: ({ x, y }) => (x === 1 && y === 1 ? 100 : 0) } };
        const places = { goal: { x: 1, y: 1 }, point: { x: 11, y: 11 }, from: { x: 9, y: 9 } };
        return m.cautions(state, robot, places, { agent: null }).map(({ text }) => text);
    }"""
    said = script_modules("map/go_to.js", look, zone)
    assert said[0].startswith("It lies in the restricted zone “lab”")
    assert "Something stands there, as the scans show it." in said


def test_examples_are_of_what_a_robot_in_a_namespace_can_do(script_modules: ScriptModules) -> None:
    render = """async (m, skills) => {
        const { render } = await import("preact");
        const root = document.createElement("div");
        render(m.Suggestions({ session: { state: { skills }, readOnly: false } }), root);
        return [...root.querySelectorAll("button")].map((button) => button.textContent);
    }"""
    skills = [{"name": "robot1_turn", "module": "robot1/drive", "available": True}]
    assert script_modules("conversation/suggestions.js", render, skills) == ["turn left 90 degrees"]


_PRESSED_TWICE = """async ({ Session }, commands) => {
    const session = new Session({ readOnly: false });
    const [sent, answers] = [[], []];
    session.monitor.ask = (command) => {
        sent.push(command.text ?? command.command);
        const reply = { type: "reply", command: command.command, text: "" };
        return new Promise((answer) => answers.push(() => answer(reply)));
    };
    const asked = commands.map(session.ask);
    for (const answer of answers) answer();
    const all = await Promise.all(asked);
    const again = session.ask(commands.at(-1));
    answers.at(-1)();
    return [sent, all.length, (await again).type];
}"""


def test_a_second_press_before_the_answer_gives_an_order_once(script_modules: ScriptModules) -> None:
    def say(text: str) -> dict[str, str]:
        return {"command": "say", "agent": "agent", "text": text}

    step = {"command": "step", "agent": "agent", "mode": "once"}
    pressed = [say("move 1"), say("move 1"), say("stop"), say("move 1"), step, step]
    sent = ["move 1", "stop", "move 1", "step"]
    assert script_modules("session.js", _PRESSED_TWICE, pressed) == [[*sent, "step"], len(pressed), "reply"]


_PAUSED = """async ({ Session }, steps) => {
    const session = new Session({ readOnly: false });
    let [now, mode] = [1000, null];
    performance.now = () => now;
    const sent = [];
    session.monitor.ask = async (command) => sent.push(`${now} ${command.command}`) && { type: "reply", text: "" };
    const state = { calls: [], robots: {}, skills: [] };
    for (const [ms, step] of steps) {
        now += ms;
        if (["running", "paused", "stepping"].includes(step)) {
            mode = { mode: step, approvals: [], conversation: [], calls: [], missions: [] };
            session.take({ type: "snapshot", utime: 1, snapshot: { ...state, agents: { agent: mode } } });
        } else await session.ask({ command: step, agent: "agent" });
    }
    return [sent, session.notices.at(-1)?.text];
}"""


def test_a_press_that_was_meant_to_pause_does_not_let_go_on_what_another_has_paused(
    script_modules: ScriptModules,
) -> None:
    def sent(*steps: tuple[int, str]) -> Any:
        return script_modules("session.js", _PAUSED, steps)

    by_another = ((0, "running"), (0, "paused"))
    refused = "agent was paused a moment ago: press again to let it go on"
    assert sent(*by_another, (150, "resume")) == [[], refused]
    assert sent(*by_another, (800, "resume"))[0] == ["1800 resume"]
    assert sent((0, "stepping"), (0, "paused"), (150, "resume")) == [[], refused]
    assert sent((0, "running"), (0, "pause"), (0, "paused"), (50, "resume"))[0] == ["1000 pause", "1050 resume"]
    assert sent((0, "paused"), (50, "resume"))[0] == ["1050 resume"]


def test_an_order_of_this_page_that_has_paused_nothing_makes_no_pause_by_another_its_own(
    script_modules: ScriptModules,
) -> None:
    def sent(*steps: tuple[int, str]) -> Any:
        return script_modules("session.js", _PAUSED, steps)[0]

    assert sent((0, "stepping"), (0, "step"), (0, "paused"), (150, "resume")) == ["1000 step"]
    assert sent((0, "running"), (0, "pause"), (5000, "paused"), (150, "resume")) == ["1000 pause"]
    assert sent((0, "running"), (0, "pause"), (0, "paused"), (9, "running"), (9, "paused"), (9, "resume")) == [
        "1000 pause"
    ]


def test_the_key_that_was_meant_to_pause_one_agent_lets_no_other_go_on(script_modules: ScriptModules) -> None:
    press = """async ({ useKeys }, modes) => {
        const { h, render } = await import("preact");
        const { Session } = await import("/dashboard/session.js");
        const session = new Session({ readOnly: false });
        let now = 1000;
        performance.now = () => now;
        session.monitor.status = "live";
        const sent = [];
        session.monitor.ask = async ({ command, agent }) => {
            sent.push(`${command} ${agent}`);
            return { type: "reply", text: "" };
        };
        const press = () => document.dispatchEvent(new KeyboardEvent("keydown", { key: " " }));
        document.closest = () => null;
        const agent = (mode) => ({ mode, approvals: [], conversation: [], calls: [], missions: [] });
        const take = ([one, other]) => session.take({ type: "snapshot", utime: 1, snapshot: {
            calls: [], robots: {}, skills: [], agents: { one: agent(one), other: agent(other) } } });
        await new Promise((done) => render(h(() => (useKeys(session), setTimeout(done, 100), null)), document.body));
        take(["running", "paused"]);
        take(["paused", "paused"]);
        now += 150;
        press();
        const early = [...sent];
        now += 800;
        press();
        return [early, sent];
    }"""
    assert script_modules("keys.js", press) == [[], ["resume one", "resume other"]]


_ENTRY = """async ({ TransportBar }, texts) => {
    const { h, render } = await import("preact");
    const place = document.body.appendChild(document.createElement("main"));
    const sought = [];
    const about = { begin: 0, end: 9e9, marks: [], notes: [] };
    const seek = (utime) => sought.push(utime / 1e6);
    const transport = { about, now: () => 0, playing: false, speed: 1, last: null, seek };
    render(h(TransportBar, { transport }), place);
    const field = place.querySelector("form input");
    for (const text of texts) {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((resolve) => setTimeout(resolve, 20));
        field.form.requestSubmit();
        sought.push(field.validity.valid);
    }
    return sought;
}"""


def test_a_moment_is_gone_to_as_people_write_it_and_what_is_none_stays_to_be_mended(
    script_modules: ScriptModules,
) -> None:
    good, bad = {"75": 75, " 1:15 ": 75, "20,5": 20.5, "1:00:02.5": 3602.5}, ["abc", "-5", "1:2:3:4", "1::2", "1."]
    found = script_modules("transport/transport.js", _ENTRY, [*good, *bad])
    assert found == [each for seconds in good.values() for each in (seconds, True)] + [False] * len(bad)
