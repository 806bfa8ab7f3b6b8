"""What the head and the panels below the cockpit say of a run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.bridge.serving import Served
from tests.browser.script_modules import ScriptModules

pytestmark = pytest.mark.feature("I1")


_EVENTS = """async ({ Run }, { page, heard }) => {
    const run = new Run();
    run.show({ robots: {}, agents: {}, skills: [], calls: [] });
    run.callEvent(heard[0].event, heard[0].offset);
    run.takeOlder(page);
    for (const { offset, event } of heard.slice(1)) run.callEvent(event, offset);
    return run.events.map(({ text }) => text);
}"""


def test_events_from_before_a_page_was_opened_are_listed_behind_what_it_hears_each_once(
    script_modules: ScriptModules,
) -> None:
    story = [
        {"offset": number, "event": {**_EVENT, "type": kind, "call_id": f"c{number}", "text": str(number)}}
        for number, kind in enumerate(["open", "update", "progress", "update", "update", "close"], 1)
    ]
    given = {"page": story[:5], "heard": [story[3], *story[4:]]}
    assert script_modules("store.js", _EVENTS, given) == ["6", "5", "4", "2", "1"]
    given = {"page": story[:5], "heard": [story[5]]}
    assert script_modules("store.js", _EVENTS, given) == ["6", "5", "4", "2", "1"]


_EVENT = {"utime": 1, "seq": 1, "module": "drive", "skill": "move", "caller": "me", "data": {"outcome": "completed"}}


_REGAINED = """async ({ Run }, connections) => {
    const run = new Run();
    return connections.map(({ page, heard }) => {
        run.begin();
        run.show({ robots: {}, agents: {}, skills: [], calls: [] });
        for (const { offset, event } of heard.slice(0, 1)) run.callEvent(event, offset);
        run.takeOlder(page);
        for (const { offset, event } of heard.slice(1)) run.callEvent(event, offset);
        return [run.events.map(({ text }) => text), new Set(run.events.map(({ key }) => key)).size];
    });
}"""


def _journal(run: str, count: int) -> list[dict[str, Any]]:
    events = (
        {**_EVENT, "type": "update", "call_id": run, "seq": n, "text": f"{run}{n}"} for n in range(1, count + 1)
    )
    return [{"offset": event["seq"], "event": event} for event in events]


def test_events_from_while_the_connection_was_lost_are_listed_each_once(script_modules: ScriptModules) -> None:
    journal, next_run = _journal("a", 8), _journal("b", 3)
    connections = [
        {"page": journal[:2], "heard": journal[2:3]},
        {"page": journal[:6], "heard": journal[6:7]},
        {"page": journal[:8], "heard": []},
        {"page": next_run, "heard": []},
        {"page": next_run, "heard": []},
    ]
    listed = [[f"a{n}" for n in range(count, 0, -1)] for count in (3, 7, 8)]
    both = ["b3", "b2", "b1", *listed[-1]]
    assert script_modules("store.js", _REGAINED, connections) == [
        [texts, len(texts)] for texts in [*listed, both, both]
    ]


def test_a_page_that_is_opened_in_the_middle_of_a_run_lists_what_has_happened(bridge: Served, page: Page) -> None:
    bridge.call("count", label="a", to=2)
    page.goto(bridge.url)
    expect(page.get_by_label("Events, newest first").get_by_text("completed").first).to_be_visible()


_STOPPED = """async ({ Stopped }, stops) => {
    const { h, render } = await import("preact");
    const place = document.body.appendChild(document.createElement("main"));
    const stopped = { stops, held: [], not_held: [] };
    const session = { state: { stopped }, order: 0, now: () => 6e6, readOnly: true };
    render(h(Stopped, { session }), place);
}"""


def test_the_reason_of_a_stop_stands_apart_from_its_age(script_modules: ScriptModules) -> None:
    script_modules("run/stopped.js", _STOPPED, [{"robot": "", "utime": 1_000_000, "reason": "dog in the room"}])
    expect(script_modules.page.get_by_role("alert")).to_have_text(
        re.compile(r"^Every robot is stopped 5 s ago: dog in the room")
    )


def test_who_is_released_is_left_out_of_the_stop(script_modules: ScriptModules) -> None:
    look = _STOPPED.replace("stops, held", 'stops, released: ["rex"], held')
    script_modules("run/stopped.js", look, [{"robot": "", "utime": 1, "reason": ""}, {"robot": "ida", "utime": 1}])
    expect(script_modules.page.get_by_role("alert").locator("b")).to_have_text(
        ["Every robot but rex is stopped", "ida is stopped"]
    )
    whose = """({ isStopped }, { stopped, robots }) => robots.filter((robot) => isStopped({ stopped }, robot))"""
    stopped = {"stops": [{"robot": ""}, {"robot": "rex/arm"}], "released": ["rex"]}
    asked = {"stopped": stopped, "robots": ["", "ida", "rex", "rex/arm", "rex/lift"]}
    assert script_modules("map/go_to.js", whose, asked) == ["", "ida", "rex/arm"]


_CHOSEN = """async ({ Session }, runs) => {
    const session = new Session({ readOnly: false });
    return runs.map((names, at) => {
        const agent = { approvals: [], conversation: [], number: 0 };
        const agents = Object.fromEntries(names.map((name) => [name, agent]));
        const snapshot = { agents, calls: [], leases: {}, robots: {}, skills: [], modules: [] };
        session.take({ type: "snapshot", utime: 1e15, snapshot });
        if (at === 0) session.choose("robot10");
        return [session.robot, session.agents().map(({ name }) => name)];
    });
}"""


def test_a_chosen_robot_that_the_next_run_lacks_hides_none_of_its_own(script_modules: ScriptModules) -> None:
    fleet, others = ["robot1/agent", "robot10/agent"], ["robot1/agent", "robot2/agent"]
    assert script_modules("session.js", _CHOSEN, [fleet, ["agent"], others, ["robot1/agent"]]) == [
        ["robot10", ["robot10/agent"]],
        ["", ["agent"]],
        ["", others],
        ["", ["robot1/agent"]],
    ]


def test_a_chosen_robot_that_is_back_is_shown_alone_again(script_modules: ScriptModules) -> None:
    fleet = ["robot1/agent", "robot10/agent"]
    assert script_modules("session.js", _CHOSEN, [fleet, fleet[:1], fleet]) == [
        ["robot10", ["robot10/agent"]],
        ["", ["robot1/agent"]],
        ["robot10", ["robot10/agent"]],
    ]
