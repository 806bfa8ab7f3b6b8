"""The timeline of calls: what it makes of events, where bars are, and how one goes through it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from playwright.sync_api import Page

from dimos_streams.operator.agents import is_look
from dimos_streams.operator.known_names import APPROVALS
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.review import BEGUN, REVIEW
from tests.bridge.scene import event
from tests.bridge.serving import Served, served
from tests.browser.script_modules import ScriptModules
from tests.browser.waiting import until

S = 1_000_000
LINE = 19
"""The height of one in tables, in pixels."""
BEGAN = 1_795_000_000 * S


def said(offset: int, call: str, kind: str, at_s: float, **fields: Any) -> dict[str, Any]:
    """An entry of the journal."""
    given = {"module": "drive", "skill": "move", "caller": "agent", "text": f"{kind} of {call}", "data": {}}
    about = {"utime": BEGAN + int(at_s * S), "call_id": call, "seq": offset, "type": kind}
    return {"offset": offset, "event": about | given | fields}


def begun(offset: int, call: str, at_s: float, resources: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    data = {"arguments": {"to": "kitchen"}, "parent": fields.pop("parent", ""), "resources": list(resources)}
    return said(offset, call, "open", at_s, data=data, **fields)


def ended(offset: int, call: str, at_s: float, outcome: str = "completed", **fields: Any) -> dict[str, Any]:
    return said(offset, call, "close", at_s, data={"outcome": outcome, "result": 7}, **fields)


MISSION = {"module": "agent", "skill": "say", "caller": "operator"}
STORY = [
    begun(1, "m1", 0, **MISSION),
    begun(2, "c1", 1, ["base"]),
    said(3, "c1", "update", 2, text="on the way"),
    begun(4, "c1~1", 3, ["base"], caller="agent"),
    begun(5, "c2", 4, ["arm"]),
    begun(6, "other", 4.5, ["base"], caller="me"),
    ended(7, "other", 4.6, "rejected"),
    ended(8, "c1~1", 5),
    said(9, "c1", "gap", 5.5, text="2 events are missing", data={"from_seq": 4, "to_seq": 5}),
    ended(10, "c1", 6, "failed", text="the door is shut"),
    ended(11, "m1", 7, **MISSION),
]
FOLD = "const log = new m.CallLog(); for (const { offset, event } of given) log.take(offset, event);"


def test_events_make_the_same_calls_in_whatever_order_and_however_often_they_come(
    script_modules: ScriptModules,
) -> None:
    def folded(entries: list[dict[str, Any]]) -> Any:
        calls = script_modules(
            "timeline/calls.js", f"(m, given) => {{ {FOLD} return [...log.calls.values()]; }}", entries
        )
        return {call.pop("id"): call for call in calls}

    calls = folded(STORY)
    failed = calls["c1"]
    assert (failed["state"], failed["text"], failed["result"]) == ("failed", "the door is shut", 7)
    assert [(tick["type"], tick["utime"] - BEGAN) for tick in failed["ticks"]] == [
        ("update", 2 * S),
        ("gap", 5.5 * S),
    ]
    assert (failed["begin"] - BEGAN, failed["end"] - BEGAN) == (1 * S, 6 * S)
    assert (calls["c2"]["state"], calls["c2"]["end"]) == ("open", None)
    rng = random.Random(1)
    for _ in range(5):
        mixed = [*STORY, *STORY]
        rng.shuffle(mixed)
        assert folded(mixed) == calls


def test_calls_by_which_programs_only_look_at_agents_are_nobodys(script_modules: ScriptModules) -> None:
    looks = [f"robot1_{name}" for name in (APPROVALS, "plans", "typing")]
    entries = [
        begun(number, f"c{number}", number, module="robot1/agent", skill=skill, caller="operator")
        for number, skill in enumerate([*looks, "robot1_decide", f"robot1_{REVIEW}"], 1)
    ]
    left_out = [is_look(ToolEvent.from_dict(each["event"])) for each in entries]
    assert left_out == [True, True, True, False, True], "a review is shown by what it asks about, where bars are"
    lines = [
        {"requested_utime": 1, "state": "open", "parent": "", "progress": {}} | each["event"] for each in entries
    ]
    found = script_modules(
        "timeline/calls.js",
        f"""async (m, {{ given, lines, url }}) => {{
            {FOLD}
            const {{ Run }} = await import(url);
            const run = new Run();
            run.show({{ robots: {{}}, agents: {{}}, skills: [], calls: lines }});
            for (const {{ offset, event }} of given) run.callEvent(event, offset);
            const open = run.state.calls.map(({{ call_id: id }}) => id);
            return [[...log.calls.keys()], open, [...run.calls.keys()], run.events.length, log.newest];
        }}""",
        {"given": entries, "lines": lines, "url": script_modules.page.url + "dashboard/store.js"},
    )
    assert found == [["c4", "c5"], ["c4", "c5"], ["c4", "c5"], 2, 5]


def test_a_review_whose_call_has_begun_was_a_yes(script_modules: ScriptModules) -> None:
    asked = {"skill": "r_review_call", "module": "r/agent"}
    story = [
        said(1, "yes", "open", 1, **asked),
        ended(2, "yes", 2, "cancelled", text=BEGUN, **asked),
        said(3, "no", "open", 1, **asked),
        ended(4, "no", 2, "cancelled", text="the caller has given it up", **asked),
        said(5, "other", "open", 1),
        ended(6, "other", 2, "cancelled", text=BEGUN),
    ]
    states = f"(m, given) => {{ {FOLD} return [...log.calls.values()].map(({{ id, state }}) => [id, state]); }}"
    assert dict(script_modules("timeline/calls.js", states, story)) == {
        "yes": "completed",
        "no": "cancelled",
        "other": "cancelled",
    }


def test_a_mission_that_an_operator_has_ended_was_cancelled(script_modules: ScriptModules) -> None:
    whys = {"a": "aborted", "b": "call_cancelled", "c": "cancelled", "d": "stopped", "e": "call_failed", "f": [1]}
    story = [
        said(place, call, "close", place, data={"outcome": "failed", "result": {"reason": why}}, **MISSION)
        for place, (call, why) in enumerate(whys.items(), start=1)
    ]
    story.append(said(9, "other", "close", 9, data={"outcome": "failed", "result": {"reason": "cancelled"}}))
    states = f"(m, given) => {{ {FOLD} return [...log.calls.values()].map(({{ id, state }}) => [id, state]); }}"
    expected = dict.fromkeys("abc", "cancelled") | dict.fromkeys(["d", "e", "f", "other"], "failed")
    assert dict(script_modules("timeline/calls.js", states, story)) == expected


def test_what_a_mission_hears_of_a_cancelled_call_is_no_error(script_modules: ScriptModules) -> None:
    heard = [{"role": "tool", "text": each, "outcome": each, "is_error": True} for each in ("cancelled", "failed")]
    story = [
        said(place, "m1", "update", place, data={"entry": entry}, **MISSION)
        for place, entry in enumerate(heard, start=1)
    ]
    are_bad = f"(m, given) => {{ {FOLD} return log.calls.get('m1').ticks.map(({{ isBad }}) => isBad); }}"
    assert script_modules("timeline/calls.js", are_bad, story) == [False, True]


def test_a_cancelled_call_has_one_colour_wherever_it_is(script_modules: ScriptModules) -> None:
    colours = """(m) => ["badge cancelled", `state ${m.lookOf("cancelled").colour}`].map((name) => {
        document.body.append(Object.assign(document.createElement("b"), { className: name }));
        return getComputedStyle(document.body.lastChild).color;
    })"""
    badge, state = script_modules("calls/outcomes.js", colours)
    assert badge == state


def test_families_are_together_robots_apart_and_a_lease_is_shown_once_for_who_has_it(
    script_modules: ScriptModules,
) -> None:
    laid_out = """async (m, given) => {
        const { laidOut, neighbour } = await import(`${given.url}/layout.js`);
        const log = new m.CallLog();
        for (const { offset, event } of given.entries) log.take(offset, event);
        const layout = laidOut([...log.calls.values()], new Map([...log.missionOf, ...given.missionOf]));
        const walk = (way) => {
          const ids = [];
          for (let id = given.from; ids.length < 9; ids.push(id)) {
            id = neighbour(layout, id, way)?.call.id;
            if (!id) break;
          }
          return ids;
        };
        return {
          rows: Object.fromEntries(layout.bars.map(({ call, row, depth }) => [call.id, [row, depth]])),
          lanes: layout.lanes.map(({ resource, holds }) => [resource, holds.map(({ call }) => call.id)]),
          sections: layout.sections.map(({ name }) => name),
          right: walk("right"), down: walk("down"),
        };
    }"""
    where = script_modules.page.url + "dashboard/timeline"

    def shown(entries: list[dict[str, Any]], mission_of: Iterable[tuple[str, str]] = (), start: str = "m1") -> Any:
        given = {"url": where, "entries": entries, "missionOf": list(mission_of), "from": start}
        return script_modules("timeline/calls.js", laid_out, given)

    found = shown(STORY)
    assert found["rows"] == {"m1": [0, 0], "c1": [1, 1], "c1~1": [2, 2], "c2": [3, 1], "other": [4, 0]}
    assert found["lanes"] == [["arm", ["c2"]], ["base", ["c1"]]], (
        "a child uses its parent's; who is rejected has none"
    )
    assert (found["right"], found["down"]) == (["c1", "c1~1", "c2", "other"], ["c1", "c1~1", "c2", "other"])
    later = [begun(20, "c3", 8, caller="me"), begun(21, "m2", 9, **MISSION), begun(22, "c4", 10)]
    more = shown([*STORY, *later])["rows"]
    assert {name: more[name] for name in found["rows"]} == found["rows"], "what was there stays where it was"
    assert (more["m2"], more["c4"][1]) == ([more["c3"][0] + 1, 0], 1)
    assert shown([*STORY, *later], [("c4", "m1")])["rows"]["c4"][0] < more["m2"][0], "an agent knows better"
    two = [begun(30, "x", 0, module="robot2/drive"), begun(31, "y", 0, module="robot1/drive")]
    assert shown(two)["sections"] == ["robot1", "robot2"]
    entry = {"role": "tool", "skill": "turn", "is_error": True, "text": "it needs 'base'"}
    refused = [said(12, "m1", "update", 5, **MISSION, data={"entry": entry})]
    refused += [said(13, "m1", "update", 5.1, **MISSION, data={"entry": {"role": "tool", "call_id": "other"}})]
    assert shown([*STORY, *refused])["rows"].keys() - found["rows"].keys() == {"m1!12"}, "it never was a call"
    assert shown([*STORY, *refused])["rows"]["other"][1] == 1, "the mission says whose it is"
    paused = """async (m, given) => {
        const { pausesOf } = await import(`${given.url}/layout.js`);
        const log = new m.CallLog();
        for (const { offset, event } of given.entries) log.take(offset, event);
        const bands = pausesOf(log.calls.values(), () => given.isPaused);
        return bands.map(({ robot, from, to }) => [robot, from - given.began, to && to - given.began]);
    }"""
    agent = {"module": "robot1/agent", "caller": "operator"}
    orders = [("p1", "pause", 1), ("p2", "pause", 2), ("r1", "resume", 3), ("p3", "pause", 5)]
    each = [(name, at, {**agent, "skill": f"robot1_{skill}"}) for name, skill, at in orders]
    entries = [make(at * 10 + later, name, at + later / 10, **about)
               for name, at, about in each for later, make in enumerate((begun, ended))]  # fmt: skip
    for is_paused, last in ((True, [["robot1", 5.1 * S, None]]), (False, [])):
        given = {"url": where, "entries": entries, "began": BEGAN, "isPaused": is_paused}
        assert script_modules("timeline/calls.js", paused, given) == [["robot1", 1.1 * S, 3 * S], *last]
    step = {**agent, "skill": "robot1_step"}
    for call, mode, at in (("s1", "off", 6), ("s2", "once", 7)):
        entries.append(said(10 * at, call, "open", at, data={"arguments": {"mode": mode}}, **step))
        entries.append(ended(10 * at + 1, call, at + 0.1, **step))
    given = {"url": where, "entries": entries, "began": BEGAN, "isPaused": False}
    found = script_modules("timeline/calls.js", paused, given)
    assert found == [["robot1", 1.1 * S, 3 * S], ["robot1", 5.1 * S, 7 * S]], "a step ends a pause, too"
    circle = [begun(40, "a", 0, parent="b"), begun(41, "b", 0, parent="a"), begun(42, "a~1~1", 0)]
    assert len(shown(circle)["rows"]) == 3, "ids and parents come from outside"


def test_what_is_kept_is_bounded_and_what_was_not_heard_is_said(script_modules: ScriptModules) -> None:
    kept = script_modules(
        "timeline/calls.js",
        """(m, began) => {
            const log = new m.CallLog({ calls: 300, ticks: 2000 });
            let offset = 0;
            const about = { seq: 1, module: "m", skill: "s", caller: "c", text: "x".repeat(5000) };
            const say = (call_id, type, at, data = {}) =>
              log.take(++offset, { ...about, utime: began + at, call_id, type, data });
            for (let call = 0; call < 2000; call += 1) {
              say(`c${call}`, "open", call * 10, { arguments: { long: "y".repeat(50_000) } });
              for (let each = 1; each <= 12; each += 1) say(`c${call}`, "update", call * 10 + each / 2);
              say(`c${call}`, "close", call * 10 + 9, { outcome: "completed" });
              log.trim();
            }
            for (let update = 0; update < 3000; update += 1) say("long", "update", 20_000 + update);
            const all = [...log.calls.values()];
            const ticks = all.reduce((sum, call) => sum + call.ticks.length, 0);
            const long = log.calls.get("long").omitted;
            return { calls: all.length, ticks, since: log.since, newest: log.calls.has("c1999"),
              size: JSON.stringify(all).length, long };
        }""",
        BEGAN,
    )
    assert (kept["calls"] <= 301, kept["ticks"] <= 2400, kept["newest"], kept["long"]) == (True, True, True, 2600)
    assert kept["since"] > 14_000, "pages have what was forgotten"
    assert kept["size"] < 5_000_000
    fractions = "(m, given) => { const most = {}; return given.map((each) => m.fractionOf(each, most)); }"
    progress = [{"remaining_m": 4.0}, {"remaining_m": 1.0}, {"percent": 30}, {"done": 1, "total": 4}, {"speed": 1}]
    assert script_modules("timeline/calls.js", fractions, progress) == [0, 0.75, 0.3, 0.25, None]
    lost = """(m, given) => {
        const log = new m.CallLog();
        for (const { offset, event } of given.entries) log.take(offset, event);
        log.lostSight(given.now, "no connection");
        log.takeState([], given.now + 5, true);
        log.sees(given.now + 5);
        const { state, end } = log.calls.get("c2");
        log.take(99, given.close);
        return [state, end - given.now, log.breaks.map(({ from, to }) => to - from), log.calls.get("c2").state];
    }"""
    given = {"entries": STORY, "now": BEGAN + 9 * S, "close": ended(99, "c2", 9)["event"]}
    assert script_modules("timeline/calls.js", lost, given) == ["unknown", 5, [5], "completed"]


def test_only_what_is_seen_is_drawn(script_modules: ScriptModules) -> None:
    drawn = script_modules(
        "timeline/calls.js",
        """async (m, given) => {
            const load = (name) => import(`${given.url}/${name}.js`);
            const [{ laidOut }, { draw }] = [await load("layout"), await load("draw")];
            const log = new m.CallLog();
            let offset = 0;
            const about = { seq: 1, module: "m", skill: "s", caller: "c", text: "" };
            const say = (call_id, type, at, data = {}) =>
              log.take(++offset, { ...about, utime: given.began + at, call_id, type, data });
            for (let call = 0; call < 1000; call += 1) {
              say(`c${call}`, "open", call * 1e6);
              for (let update = 1; update <= 8; update += 1) say(`c${call}`, "update", call * 1e6 + update * 1e5);
              say(`c${call}`, "close", call * 1e6 + 9e5, { outcome: "completed" });
            }
            const g = new OffscreenCanvas(1000, 300).getContext("2d");
            let fills = 0;
            for (const name of ["fill", "fillRect", "fillText", "stroke"]) {
              const plain = g[name].bind(g);
              g[name] = (...args) => { fills += 1; plain(...args); };
            }
            const began = performance.now();
            const layout = laidOut([...log.calls.values()]);
            const laid = performance.now() - began;
            const viewOf = (from, span) => ({ from: given.began + from, to: given.began + from + span });
            const scene = (from, span) => ({ layout, view: viewOf(from, span), width: 1000, height: 300, scroll: 0,
              now: given.began + 1e9, until: Infinity, selected: null, cursor: null, hovered: null,
              breaks: [], bands: [], knownFrom: given.began, before: "", colour: () => "rgb(0 0 0)" });
            draw(g, scene(500e6, 20e6));
            const few = fills;
            const begun = performance.now();
            for (let at = 0; at < 20; at += 1) draw(g, scene(500e6 + at * 1e5, 20e6));
            return { events: offset, few, laid, each: (performance.now() - begun) / 20 };
        }""",
        {"url": script_modules.page.url + "dashboard/timeline", "began": BEGAN},
    )
    assert drawn["events"] == 10_000
    assert drawn["few"] < 21 * 8 + 21 * 9 + 100, f"a bar with its label and updates: {drawn}"


def test_a_call_is_told_in_words_and_not_as_programs_write_it(script_modules: ScriptModules) -> None:
    busy = "'r_turn' needs 'r/base', which 'r_follow' holds for 'r/agent' (following ann): call 'de68'"
    plain = "Follow drives the robot now (following ann). It has to end first: cancel it, or say stop."
    call = {"skill": "r_turn", "module": "r/drive", "caller": "r/agent", "arguments": {"angle_deg": 30}}
    refused = call | {"state": "rejected", "begin": 0, "end": 0, "isWhole": True, "ticks": [], "text": busy}
    mission = refused | {"skill": "r_say", "arguments": {"text": "turn"}, "state": "failed"}
    mission |= {"text": f"the mission did not complete: call_failed (r_turn: {busy})"}
    unheard = mission | {"state": "unknown", "text": "[r_follow, call de68, lost] The bridge was gone"}
    asked = refused | {
        "skill": "r_review_call",
        "module": "r/agent",
        "caller": "bridge",
        "text": "",
        "state": "cancelled",
    }
    asked |= {"arguments": {"call_id": "58fa.1", "parent": "58fa", "skill": "r_follow_person"}}
    say = "(words, calls) => calls.map((call) => [words.saidOf(call), words.inWords(call, 0)])"
    assert script_modules("timeline/words.js", say, [refused, mission, unheard, asked]) == [
        [plain, f"Turn · angle 30°, rejected after 0.0 s, asked by r/agent: {plain}"],
        [
            f"Not done: Turn: {plain}",
            f"Mission “turn”, failed after 0.0 s, asked by r/agent: Not done: Turn: {plain}",
        ],
        ["The bridge was gone", "Mission “turn”, end not heard after 0.0 s, asked by r/agent: The bridge was gone"],
        ["", "May Follow person begin?, cancelled after 0.0 s, asked by bridge"],
    ]


def publish(bridge: Served, *events: Any) -> None:
    async def work() -> None:
        hub = bridge.scene.bridge.broadcast
        hub.publish(hub.journal.append(events))

    bridge.run(work())


def pixels(page: Page) -> int:
    """How many pixels of the timeline are of no ground."""
    script = """() => {
        const canvas = document.querySelector(".timeline canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 22, canvas.width, canvas.height - 22);
        let coloured = 0;
        for (let at = 0; at < data.length; at += 4) {
          const [red, green, blue] = data.subarray(at, at + 3);
          if (Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
        }
        return coloured;
    }"""
    return int(page.evaluate(script))


@pytest.mark.feature("I1")
@pytest.mark.live
def test_calls_are_bars_that_one_points_at_chooses_and_reads(page: Page) -> None:
    with served() as bridge:
        publish(bridge, *(event(seq, "update", call_id=f"old{seq}") for seq in range(1, 1201)))
        page.goto(bridge.url)
        page.get_by_role("region", name="Timeline of calls").wait_for()
        bridge.call("fail")
        follow = bridge.call("follow", wait="answer", description="ann")["call_id"]
        timeline = page.get_by_role("region", name="Timeline of calls")
        options = timeline.get_by_role("option")
        until(page, lambda: any(text.startswith("Follow, ") for text in options.all_inner_texts()))
        until(page, lambda: pixels(page) > 300)

        listbox = timeline.get_by_role("listbox")
        listbox.focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowRight")
        while f"call-{follow}" != (listbox.get_attribute("aria-activedescendant") or ""):
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        details = page.get_by_role("region", name="Details of the call")
        assert "Follow" in details.inner_text()
        assert "base" in details.inner_text()
        details.get_by_text("Arguments").click()
        assert "ann" in details.locator("pre").inner_text()
        details.get_by_role("button", name="Cancel follow").click()
        until(page, lambda: "cancelled" in details.inner_text())
        page.keyboard.press("Escape")
        until(page, lambda: details.count() == 0)

        timeline.get_by_role("button", name="Table").click()
        row = timeline.get_by_role("row").filter(has_text="Fail")
        assert "failed" in row.inner_text()
        assert "the floor is wet" in row.inner_text()
        names = timeline.get_by_role("rowheader").filter(has_text="Follow · ann").get_by_role("button")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            heights = names.evaluate_all("(all) => all.map((name) => name.getBoundingClientRect().height)")
            assert [round(height / LINE) for height in heights] == [1]
        timeline.get_by_role("button", name="Table").click()

        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/events?" in request.url else None)
        assert timeline.get_by_role("button", name="Follow now").get_attribute("aria-pressed") == "true"
        timeline.get_by_role("button", name="Earlier").click()
        assert timeline.get_by_role("button", name="Follow now").get_attribute("aria-pressed") == "false"
        listbox.focus()
        page.keyboard.press("Home")
        until(page, lambda: "1,2" in (timeline.locator("canvas").get_attribute("aria-label") or ""))
        page.goto("about:blank")


_HISTORY = """async (m, given) => {
    const { History } = await import(`${given.url}/history.js`);
    const pages = [...given.pages];
    const asked = [];
    const get = async (path) => {
      asked.push(path);
      const { entries, before } = pages.shift();
      const link = before === null ? {} : { Link: `</events?limit=500&before=${before}>; rel="next"` };
      return new Response(JSON.stringify(entries), { headers: link });
    };
    const log = new m.CallLog();
    for (const { offset, event } of given.entries) log.take(offset, event);
    const history = new History(log, get, () => {});
    await (given.until === null ? history.catchUp(() => given.now, given.isSame) : history.reach(given.until));
    return { asked, ids: [...log.calls.keys()].sort(), states: [...log.calls.values()].map(({ state }) => state),
      breaks: log.breaks.map(({ text }) => text), beginning: log.beginning, problem: history.problem };
}"""


def test_pages_are_read_as_far_as_they_are_seen_and_what_was_missed_is_read_again(
    script_modules: ScriptModules,
) -> None:
    def looked(pages: list[tuple[list[dict[str, Any]], int | None]], **given: Any) -> Any:
        about = {"url": script_modules.page.url + "dashboard/timeline", "now": BEGAN + 99 * S, "isSame": False}
        about |= {"pages": [{"entries": entries, "before": before} for entries, before in pages], "until": None}
        return script_modules("timeline/calls.js", _HISTORY, about | given)

    new, old = [begun(60, "new", 60)], [begun(40, "old", 40)]
    pages = [(new, 50), ([], 45), (old, 30), ([], None)]
    back = looked(pages, entries=[], until=BEGAN + 45 * S)
    assert (back["ids"], back["beginning"], back["problem"]) == (["new", "old"], None, "")
    assert back["asked"] == ["events?limit=500", "events?limit=500&before=50", "events?limit=500&before=45"]
    whole = looked(pages, entries=[], until=0)
    assert (len(whole["asked"]), whole["beginning"]) == (4, "No call before this.")

    missed = [*STORY, said(12, "c2", "update", 8), ended(13, "c2", 9)]
    again = looked([(missed[-2:], 12), (missed[:-2], 1)], entries=STORY)
    assert (again["breaks"], set(again["states"]) & {"open", "unknown"}) == ([], set())
    other = looked([(new, None)], entries=STORY)
    assert (other["breaks"], "unknown" in other["states"]) == (["another run begins"], True)
    earlier = looked([(STORY[:3], None)], entries=STORY, isSame=True)
    assert earlier["breaks"] == [], "an earlier moment of a recording"


_STOPPED = """async (m, where) => {
    const { History } = await import(`${where}/history.js`);
    const after = async (read) => {
      const log = new m.CallLog();
      log.newest = 9;
      let asked = 0;
      const history = new History(log, async () => {
        asked += 1;
        if (asked === 2) history.stop();
        return new Response("[]", { headers: { Link: `<x?before=${100 - asked}>; rel="next"` } });
      }, () => {});
      await read(history);
      await read(history);
      return asked;
    };
    return [await after((each) => each.reach(0)), await after((each) => each.catchUp(() => 0, true))];
}"""


def test_nobody_asks_for_pages_that_nobody_looks_at_any_more(script_modules: ScriptModules) -> None:
    where = script_modules.page.url + "dashboard/timeline"
    assert script_modules("timeline/calls.js", _STOPPED, where) == [2, 2]
