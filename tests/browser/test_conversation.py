"""What the conversation and the store make of what the monitor reports, function by function."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.serving import Served
from tests.browser.conftest import Contexts
from tests.browser.script_modules import ScriptModules
from tests.browser.test_reasons import BUSY, DRIVES

_AGENT = {"agent": "agent", "approvals": []}
_ITEMS = """(items, { entries, calls, agent }) =>
    items.itemsOf(entries, new Map(calls.map((call) => [call.id, call])), agent)"""


def entry(number: int, role: str, text: str, **more: Any) -> dict[str, Any]:
    fields = {"number": number, "role": role, "text": text, "utime": number * 1_000_000, "skill": "", "call_id": ""}
    return {**fields, "is_error": False, "missions": [], **more}


def known(call_id: str, utime: int, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "skill": "follow_person", "caller": "agent", "parent": "", "utime": utime, **more}


def items(module: ScriptModules, *entries: dict[str, Any], calls: Any = (), **agent: Any) -> list[tuple[str, str]]:
    given = {"entries": entries, "calls": list(calls), "agent": {**_AGENT, **agent}}
    made = module("conversation/items.js", _ITEMS, given)
    return [(each["kind"], each.get("text") or each["approval"]["id"]) for each in made]


_SAID = """(items, { entries, agent }) => items.itemsOf(entries, new Map(), agent)
    .map(({ kind, text, reports }) => [kind, reports ? reports.map((each) => each.text) : text])"""


@pytest.mark.feature("I1")
def test_a_fact_about_a_call_is_on_its_card_once_and_what_the_agent_says_is_a_bubble(
    script_modules: ScriptModules,
) -> None:
    follow = {"skill": "follow_person", "call_id": "c"}
    story = [
        entry(1, "operator", "follow ann"),
        entry(3, "tool", "Following ann\n(Call c goes on; what follows will be reported.)", **follow),
        entry(4, "assistant", "follow_person: Following ann"),
        entry(5, "assistant", "I follow her."),
        entry(6, "event", "[follow_person, call c, update] Lost ann", **follow),
        entry(7, "event", "[follow_person, call c, update] Found ann\nagain", **follow),
        entry(8, "assistant", "follow_person: Lost ann\nfollow_person: Found ann again"),
        entry(9, "event", "[follow_person, call c, timed_out] 60 s are over", **follow),
        entry(10, "assistant", "follow_person has ended (timed out): 60 s are over"),
        entry(11, "tool", "'turn' needs 'base'", skill="turn", is_error=True),
        entry(12, "assistant", "turn: 'turn' needs 'base'"),
        entry(13, "assistant", "follow_person: Lost ann\nShall I look for her?"),
        entry(14, "assistant", "[noted]"),
        entry(15, "tool", "cancelled: enough", skill="turn", call_id="d", is_error=True),
        entry(16, "assistant", "turn: cancelled: enough"),
        entry(17, "assistant", "[stopped: 1 call ended; the robot was held by gate]"),
    ]
    said = script_modules("conversation/items.js", _SAID, {"entries": story, "agent": _AGENT})
    assert said == [
        ["operator", "follow ann"],
        ["call", ["Following ann", "Lost ann", "Found ann\nagain", "60 s are over"]],
        ["assistant", "I follow her."],
        ["refusal", "turn"],
        ["assistant", "follow_person: Lost ann\nShall I look for her?"],
        ["call", ["enough"]],
        ["assistant", "stopped: 1 call ended; the robot stood still"],
    ]
    expected = [("operator", "follow ann"), ("call", "follow_person")]
    first = items(script_modules, *story[:1], calls=[known("c", 2_000_000)])
    assert first == expected, "before anything is said of it, where it began"
    assert items(script_modules, calls=[known("x", 1, caller="me"), known("x~1", 1, parent="x")]) == []


_WRITTEN = """(echoes, { entries, texts }) => {
    const made = echoes.Echoes.of(entries);
    return texts.map((text) => [made.begins(text), made.has(text)]);
}"""


def test_what_is_written_is_shown_as_soon_as_it_says_something_of_its_own(script_modules: ScriptModules) -> None:
    entries = [entry(1, "event", "[turn, call c, completed] Turned 90 deg", skill="turn", call_id="c")]
    texts = ["", "tu", "turn is done: Turned", "turn is done: Turned 90 deg", "turn is done: Turned…", "turn, yes"]
    made = script_modules("conversation/echoes.js", _WRITTEN, {"entries": entries, "texts": texts})
    assert made == [[True, False], [True, False], [True, False], [True, True], [False, True], [False, False]]


def test_that_robots_stand_is_said_by_their_names_and_of_each_that_has_not_confirmed_it_why(
    script_modules: ScriptModules,
) -> None:
    lines = "(held, answers) => held.heldLines(answers).map(({ text, isGood }) => [text, isGood])"
    missing = [{"gate": "b/gate", "problem": "deaf", "text": "it does not listen to /hold"}]
    missing += [{"gate": "c", "problem": "missing", "text": "no velocity gate of it was heard of"}]
    assert script_modules("held.js", lines, {"held": ["a/gate", "a/other"], "not_held": missing}) == [
        ["held: a stands still", True],
        ["NOT confirmed that b stands: it does not listen to such orders", False],
        ["NOT confirmed that c stands: it has nothing that could confirm it", False],
    ]
    assert script_modules("held.js", lines, {"held": [], "not_held": []}) == [
        ["NOT confirmed that a robot stands: nobody has said so", False]
    ]


_NEWEST = "(doing, entries) => doing.newestWords(entries, 'r/agent')?.text ?? null"


def test_an_agents_line_says_what_was_said_last_and_not_what_it_only_repeats(script_modules: ScriptModules) -> None:
    story = [
        entry(1, "operator", "turn left"),
        entry(2, "tool", BUSY, skill="r_turn", is_error=True),
        entry(3, "assistant", f"r_turn: {BUSY}"),
        entry(4, "assistant", "I can't."),
    ]
    said = [script_modules("conversation/doing.js", _NEWEST, story[:count]) for count in range(5)]
    assert said == [None, "You: turn left", DRIVES, DRIVES, "I can't."]


def test_many_notes_are_folded_and_an_approval_stands_for_its_note(script_modules: ScriptModules) -> None:
    notes = [entry(number, "note", f"note {number}") for number in range(1, 8)]
    assert items(script_modules, *notes, entry(8, "error", "it broke")) == [
        ("notes", "6"),
        ("note", "note 7"),
        ("note", "it broke"),
    ]
    waits = entry(1, "note", "Waits for an operator's decision: go_to()\n`dimos-streams approve a-1`, or `reject`")
    asked = [("note", "An operator was asked for approval.")]
    assert items(script_modules, waits) == asked, "it waits no longer: there is no approval of it any more"
    approval = {"id": "a", "created_utime": 1_000_000}
    assert items(script_modules, notes[0], approvals=[approval]) == [("approval", "a")]


@pytest.mark.parametrize(
    ("written", "text", "state", "data"),
    [
        (
            'Found ann\ndata: {"d": 2}\n(Call c goes on; what follows will be reported.)',
            "Found ann",
            "open",
            {"d": 2},
        ),
        ('[follow_person, call c, completed] Done\nresult: {"s": 1}', "Done", "completed", {"s": 1}),
        ("[follow_person, call c, update] Lost\nher", "Lost\nher", "open", None),
        ('{"x": 1}', "", "", {"x": 1}),
        ('I see\nresult: {"things": [', "I see", "", '{"things": ['),
        ("result: of no use", "result: of no use", "", None),
    ],
)
def test_what_was_written_for_the_model_is_taken_apart_for_people(
    script_modules: ScriptModules, written: str, text: str, state: str, data: object
) -> None:
    report = script_modules("conversation/report.js", "(report, text) => report.reportOf(text)", written)
    assert report == {"text": text, "state": state, "data": data}


def test_numbers_have_units_and_as_many_decimals_as_make_sense(script_modules: ScriptModules) -> None:
    given = [["distance_m", 1.834], ["bearing_deg", -3.2], ["bearing_deg", -0.2], ["laps", 3], ["speed", 0.4]]
    given += [["followed_s", 12.34], ["turn_rad_s", 0.5], ["volts", 11.25], ["battery_percent", 49.6]]
    read = """(format, all) => all.map(([name, value]) => {
        const measure = format.measureOf(name);
        return [measure.title, format.valueText(value, measure)];
    })"""
    assert script_modules("format.js", read, given) == [
        ["distance", "1.83 m"],
        ["bearing", "−3°"],  # noqa: RUF001 - a minus, as it is shown
        ["bearing", "0°"],
        ["laps", "3"],
        ["speed", "0.40 m/s"],
        ["followed", "12.3 s"],
        ["turn", "0.50 rad/s"],
        ["volts", "11.3"],
        ["battery", "50 %"],
    ]
    arguments = {"description": "ann", "distance_m": 1.5, "angle_deg": 22.5, "reason": "", "now": True, "of": None}
    said = script_modules("format.js", "(format, values) => format.givenText(values)", arguments)
    assert said == "ann · distance 1.5 m · angle 22.5° · now true"


_DOING = """(doing, agents) => agents.map((given) => {
    const agent = { agent: "r/agent", state: "idle", mode: "running", calls: [], approvals: [], waiting_calls: [],
        retry: null, ...given };
    const lines = [{ call_id: "c", skill: "r_turn", text: "10 deg to turn" }];
    return [doing.badgesOf(agent, 5e6).map(({ text }) => text).join(", "), doing.detailOf(agent, lines)];
})"""


@pytest.mark.feature("I1")
def test_a_badge_says_what_an_agent_waits_for_before_what_it_does(script_modules: ScriptModules) -> None:
    asks = {"state": "executing", "approvals": [{"skill": "r_go_to"}]}
    failed = {"error": "HTTP 500", "attempt": 1, "attempts": 5, "again_utime": 12e6}
    retry = {"state": "streaming", "retry": failed}
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({}, "idle", ""),
        ({"state": "streaming"}, "thinks", ""),
        ({"calls": ["c"]}, "acts", "Turn: 10 deg to turn"),
        ({"calls": ["c"], "mode": "paused"}, "paused", "Turn: 10 deg to turn"),
        ({"calls": ["c"], "mode": "paused", "paused_for": "wet floor (by 'ann')"}, "paused", "wet floor (by 'ann')"),
        (asks, "waits for approval", "Go to begins when you approve it, below."),
        ({**asks, "mode": "paused"}, "waits for approval, paused", "Go to begins when you approve it, below."),
        (retry, "model fails, asked again in 7 s", "HTTP 500"),
        ({**retry, "retry": {**failed, "again_utime": 4e6}}, "model fails, is asked again", "HTTP 500"),
        ({"mode": "stepping", "waiting_calls": [{}]}, "waits for your step, step by step", ""),
    ]
    said = script_modules("conversation/doing.js", _DOING, [given for given, _, _ in cases])
    assert said == [[badge, detail] for _, badge, detail in cases]


@pytest.mark.feature("C5")
def test_who_approves_sends_the_revision_that_he_sees_or_has_begun_to_change(script_modules: ScriptModules) -> None:
    approval = {"id": "a", "skill": "go_to", "created_utime": 1, "expires_utime": None, "hidden_characters": 0}
    sent = script_modules(
        "conversation/approval.js",
        """async (module, shown) => {
            const { h, render } = await import("preact");
            const place = document.body.appendChild(document.createElement("main"));
            const sent = [];
            const session = { connected: true, readOnly: false, now: () => 2e6,
                ask: ({ command, revision }) => sent.push([command, revision]) };
            const show = (approval) => render(h(module.Approval, { name: "agent", approval, session }), place);
            const buttons = () => [...place.querySelectorAll("button")];
            const press = (text) => buttons().find((each) => each.textContent === text).click();
            const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
            show(shown[0]);
            press("Approve");
            const field = place.querySelector("textarea");
            field.value = '{"x": 5}';
            field.dispatchEvent(new Event("input", { bubbles: true }));
            await settled();
            show(shown[1]);
            await settled();
            for (const each of ["Approve with these", "Only change", "Approve"]) press(each);
            return sent;
        }""",
        [{**approval, "revision": number, "arguments": {"x": number}} for number in (1, 2)],
    )
    assert sent == [["decide", 1], ["decide", 1], ["amend", 1], ["decide", 2]]


@pytest.mark.feature("C5")
def test_a_press_that_was_meant_for_the_approval_before_decides_nothing(script_modules: ScriptModules) -> None:
    approval = {"skill": "go_to", "created_utime": 1, "expires_utime": None, "hidden_characters": 0, "revision": 1}
    sent, notices = script_modules(
        "conversation/approval.js",
        """async (module, approvals) => {
            const { h, render } = await import("preact");
            const place = document.body.appendChild(document.createElement("main"));
            const [sent, notices] = [[], []];
            let now = 10_000;
            performance.now = () => now;
            const session = { connected: true, readOnly: false, now: () => 2e6, notify: (text) => notices.push(text),
                ask: ({ approval, decision }) => sent.push([approval, decision]) };
            const buttons = () => [...place.querySelectorAll("button")];
            const press = (text) => buttons().find((each) => each.textContent === text).click();
            for (const approval of approvals) {
                render(h(module.Approval, { key: approval.id, name: "agent", approval, session }), place);
                press("Approve");
                now += 150;
                press("Reject");
                now += 700;
            }
            press("Approve");
            return [sent, notices];
        }""",
        [{**approval, "id": id, "arguments": {}} for id in ("a", "b")],
    )
    assert sent == [["a", "approve"], ["a", "reject"], ["b", "approve"]]
    assert notices == ["This approval has just come in the place of another one: read it, and press again"] * 2


@pytest.mark.feature("C5")
def test_a_press_decides_on_no_approval_that_has_moved_as_one_beside_it_came_or_went(
    script_modules: ScriptModules,
) -> None:
    approval = {"skill": "go_to", "created_utime": 1, "expires_utime": None, "hidden_characters": 0, "revision": 1}
    sent = script_modules(
        "conversation/approval.js",
        """async (module, approvals) => {
            const { h, render } = await import("preact");
            const place = document.body.appendChild(document.createElement("main"));
            const sent = [];
            let now = 10_000;
            performance.now = () => now;
            const session = { connected: true, readOnly: false, now: () => 2e6, notify: () => {},
                ask: ({ approval, decision }) => sent.push([approval, decision]) };
            const show = (...shown) => render(h("div", null, shown.map((approval) =>
                h(module.Approval, { key: approval.id, name: "agent", approval, session }))), place);
            const isApprove = ({ textContent }) => textContent === "Approve";
            const press = () => [...place.querySelectorAll("button")].findLast(isApprove).click();
            const [a, b, c] = approvals;
            for (const shown of [[b], [a, b], [b], [b, c]]) {
                show(...shown);
                now += 150;
                press();
                now += 700;
            }
            press();
            return sent;
        }""",
        [{**approval, "id": id, "arguments": {}} for id in ("a", "b", "c")],
    )
    assert sent == [["b", "approve"], ["c", "approve"]]


@pytest.mark.feature("C5")
def test_arguments_that_are_not_all_here_can_be_approved_as_they_are_only(script_modules: ScriptModules) -> None:
    # What is shown in place of the others would be taken for what the operator wants.
    buttons = script_modules(
        "conversation/approval.js",
        """async (module, approval) => {
            const { h, render } = await import("preact");
            const place = document.body.appendChild(document.createElement("main"));
            const session = { connected: true, readOnly: false, now: () => 2e6 };
            render(h(module.Approval, { name: "agent", approval, session }), place);
            return [...place.querySelectorAll("button")].map(({ textContent }) => textContent);
        }""",
        {"id": "a", "skill": "note", "arguments": {"text": "begi…"}, "hidden_characters": 7, "revision": 1,
         "created_utime": 1, "expires_utime": None},
    )  # fmt: skip
    assert buttons == ["Approve", "Reject", "Delete"]


_HOURS = """(store, count) => {
    const run = new store.Run();
    const types = ["open", "update", "update", "close"];
    const state = { agents: {}, calls: [], robots: {}, skills: [] };
    const agent = { agent: "agent", number: 0, approvals: [] };
    for (let number = 1; number <= count; number++) {
        const conversation = [{ number, role: "note", text: `${number}` }];
        const robots = { r: { x: number * 0.05, y: 0, yaw: 0 } };
        run.show({ ...state, robots, agents: { agent: { ...agent, conversation } } });
        run.callEvent({ utime: number, call_id: `c${number >> 2}`, type: types[number & 3], module: "m", skill: "s",
            caller: "agent", text: "t", data: { outcome: "completed" } });
        run.agentEvent({ number, utime: number, agent: "agent", kind: "content", missions: [], data: { text: "x" } });
    }
    const talk = run.talks.get("agent");
    return { events: run.events.length, steps: run.steps.length, calls: run.calls.size, talk: talk.length,
        trail: run.trails.get("r").length, draft: run.drafts.get("agent").text.length, newest: talk.at(-1).text };
}"""


@pytest.mark.feature("I1")
def test_whatever_is_kept_is_bounded(script_modules: ScriptModules) -> None:
    kept = script_modules("store.js", _HOURS, 10_000)
    assert kept.pop("newest") == "10000"
    assert kept == {"events": 200, "steps": 200, "calls": 300, "trail": 400, "talk": 300, "draft": 4000}


def test_the_clock_follows_the_fastest_message_and_one_that_was_set(script_modules: ScriptModules) -> None:
    run_clock = """(clock) => {
        const made = new clock.RunClock();
        made.heard(1_000_000_000);
        const first = made.now();
        made.heard(1_000_500_000);
        const ahead = made.now();
        made.heard(1_000_400_000);
        const behind = made.now();
        made.heard(5_000_000);
        return [first, ahead, behind, made.now()];
    }"""
    first, ahead, behind, set_back = script_modules("clock.js", run_clock)
    assert 1_000_000_000 <= first < 1_000_400_000
    assert ahead >= 1_000_500_000
    assert behind >= 1_000_490_000, "a message that was slow says little"
    assert 5_000_000 <= set_back < 5_400_000, "so far from what it was it is another clock"


@pytest.mark.feature("I1")
def test_stop_is_in_reach_whatever_is_open_and_says_which_robots_stand(bridge: Served, contexts: Contexts) -> None:
    page = contexts.new(viewport={"width": 390, "height": 844})[0].new_page()
    page.goto(bridge.url)
    page.get_by_text("Live", exact=True).wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Help").wait_for()
    page.get_by_role("button", name="Stop every robot").click()
    stopped = page.get_by_role("alert", name="Stopped")
    stopped.get_by_text("NOT confirmed that the robot stands: it has nothing that could confirm it").wait_for()
    (stop,) = bridge.broker.stops.stopped().stops
    with page.expect_request("**/robots/release") as release:
        stopped.get_by_role("button", name="Release").click()
    assert release.value.post_data_json == {"robot": "", "seen": [stop.utime]}, "if it comes late it undoes no other"
    stopped.wait_for(state="detached")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
