"""What an open page says and shows once there is nobody whom it could hear any more."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.bridge.serving import Served, served
from tests.browser.conftest import Contexts
from tests.browser.script_modules import ScriptModules

pytestmark = pytest.mark.feature("I1")

_CLOSES = """async ({ Monitor }, codes) => {
    const plain = globalThis.WebSocket;
    const [sockets, found] = [[], []];
    globalThis.WebSocket = class {
      constructor() { sockets.push(this); }
      close() {}
    };
    try {
      const monitor = new Monitor(() => 0, () => 0);
      monitor.get = async () => { throw new Error("nobody is there"); };
      monitor.connect();
      for (const code of codes) {
        const socket = sockets.at(-1);
        if (code !== null) {
          socket.onopen();
          socket.onclose({ code });
        } else socket.onclose({ code: 1006 });
        found.push(monitor.status);
        const before = sockets.length;
        while (sockets.length === before) await new Promise((done) => setTimeout(done, 20));
      }
      return found;
    } finally {
      globalThis.WebSocket = plain;
    }
}"""


def test_a_connection_that_the_bridge_closed_at_its_end_is_not_lost(script_modules: ScriptModules) -> None:
    closes = [1006, None, 1001, None, 1006]
    said = script_modules("link/monitor.js", _CLOSES, closes)
    assert said == ["lost", "lost", "ended", "ended", "lost"]


_NO_SOCKETS = """async ({ Monitor }) => {
    const plain = globalThis.WebSocket;
    globalThis.WebSocket = class {
      constructor() { globalThis.newest = this; }
      close() {}
    };
    const until = async (condition) => {
      while (!condition()) await new Promise((done) => setTimeout(done, 5));
    };
    const refusal = new Response('{"detail": "pass it on"}', { status: 426 });
    const answers = { healthz: new Response("{}"), monitor: refusal };
    try {
      const monitor = new Monitor(() => 0, () => 0);
      monitor.get = async (path) => answers[path].clone();
      monitor.connect();
      const first = globalThis.newest;
      first.onclose({ code: 1006 });
      await until(() => monitor.status === "refused");
      const found = [monitor.since, monitor.refusal];
      await until(() => globalThis.newest !== first);
      const second = globalThis.newest;
      second.onopen();
      second.onclose({ code: 1006 });
      found.push(monitor.status, monitor.since !== null);
      await until(() => globalThis.newest !== second);
      return found;
    } finally {
      globalThis.WebSocket = plain;
    }
}"""


def test_a_page_whose_socket_never_got_through_says_what_sockets_need(script_modules: ScriptModules) -> None:
    assert script_modules("link/monitor.js", _NO_SOCKETS) == [None, "pass it on", "lost", True]


def test_the_page_sends_its_token_in_no_url(page: Page, bridge: Served) -> None:
    asked = list[str]()
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{bridge.url}/#token=s3cret%C3%A9")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert any(url.startswith("ws:") for url in asked)
    assert not [url for url in asked if "s3cret" in url.partition("#")[0]]
    page.goto("about:blank")


_ENDS = """async ({ Session }, snapshot) => {
    const { badgesOf } = await import(new URL("dashboard/conversation/doing.js", location.href));
    const session = new Session({ readOnly: false });
    session.take({ type: "snapshot", utime: 1e15, snapshot });
    const { Board } = await import(new URL("dashboard/timeline/board.js", location.href));
    const board = new Board(session);
    board.start();
    const bars = () => board.layout.bars.map(({ call }) => [call.id, call.state]);
    board.hears("live");
    const before = bars();
    session.monitor.status = "ended";
    session.monitor.onChange();
    const [now, { agents, calls, leases }] = [session.now(), session.run.state];
    await new Promise((done) => setTimeout(done, 30));
    const [agent] = session.agents();
    const stands = session.now() === now;
    board.hears("ended");
    const after = bars();
    session.take({ type: "snapshot", utime: 2e15, snapshot });
    return { missions: agents["agent"].missions, calls, leases, badges: badgesOf(agent.agent, now), stands,
        before, after, goes: session.now() >= 2e15, again: session.run.state.calls.length };
}"""


def test_nothing_goes_on_and_no_time_passes_once_the_run_has_ended(script_modules: ScriptModules) -> None:
    call: dict[str, Any] = {
        "call_id": "c1",
        "skill": "go_to",
        "module": "drive",
        "caller": "agent",
        "parent": "",
        "arguments": {},
    }
    call |= {"state": "open", "text": "", "requested_utime": 1, "progress": {}, "resources": []}
    asked = {"id": "a", "skill": "turn", "module": "drive", "arguments": {}, "created_utime": 1, "reason": ""}
    agent: dict[str, Any] = {"agent": "agent", "state": "executing", "mode": "paused", "retry": None, "number": 1}
    agent |= {"approvals": [asked], "waiting_calls": [], "conversation": [], "calls": ["c1"]}
    agent["missions"] = [{"id": "m1", "text": "come", "utime": 1}]
    state = {"agents": {"agent": agent}, "calls": [call], "leases": {"base": "c1"}, "robots": {}, "skills": []}
    found = script_modules("session.js", _ENDS, state)
    assert found["badges"] == [{"kind": "closed", "text": "ended"}]
    assert (found["missions"], found["calls"], found["leases"]) == ([], [], {})
    assert sorted(found["before"]) == [["approval:a", "asked"], ["c1", "open"]]
    assert found["after"] == [["c1", "unknown"]]
    assert (found["stands"], found["goes"], found["again"]) == (True, True, 1)


@pytest.mark.slow
def test_a_page_says_that_its_run_has_ended_and_finds_the_next(contexts: Contexts) -> None:
    context, complaints = contexts.new()
    complaints.expect("WebSocket connection to")
    complaints.expect("ERR_CONNECTION_REFUSED")
    page = context.new_page()
    status = page.get_by_role("banner").get_by_role("status")
    with served() as bridge:
        page.goto(bridge.url)
        expect(status).to_have_text("Live")
        port = bridge.port
        place = page.get_by_role("button", name="Stop every robot").bounding_box()
    expect(status).to_contain_text("The run has ended at ")
    assert page.get_by_role("button", name="Stop every robot").bounding_box() == place
    with served(port=port):
        expect(status).to_have_text("Live")


_HEADER = """async (module, { status, asks }) => {
    const { h, render } = await import("preact");
    document.querySelector("#app").remove();
    document.body.append(...["div", "main"].map((name) => document.createElement(name)));
    const agents = Object.fromEntries(["robot1/agent", "robot2/agent"].map((name) => [name, { approvals: [] }]));
    agents["robot2/agent"].approvals = Array(asks).fill({});
    const robots = { robot1: { battery: 0.9 }, robot2: { battery: 0.1 } };
    const state = { robots, agents, skills: [], modules: [], watchers: 12 };
    state.stopped = { stops: [], held: [], not_held: [] };
    const session = { monitor: { status, since: new Date(0), refusal: "" }, state, robot: "", shows: () => true,
        now: () => 0, readOnly: false };
    render(h(module.Header, { session }), document.body.querySelector("div"));
}"""


@pytest.mark.parametrize(("width", "highest"), [(1280, 70), (390, 125)])
def test_stop_stays_where_it_is_whatever_is_said_of_the_connection(
    script_modules: ScriptModules, width: int, highest: int
) -> None:
    page = script_modules.page
    before = page.viewport_size
    places, heights = [], []
    try:
        page.set_viewport_size({"width": width, "height": 800})
        for status in ("live", "lost", "ended", "refused"):
            script_modules.begin()
            script_modules("header.js", _HEADER, {"status": status, "asks": 0})
            places.append(page.get_by_role("button", name="Stop every robot").bounding_box())
            heights.append(page.evaluate("document.querySelector('header').offsetHeight"))
    finally:
        assert before is not None
        page.set_viewport_size(before)
    assert places == [places[0]] * 4
    assert max(heights) <= highest, heights
