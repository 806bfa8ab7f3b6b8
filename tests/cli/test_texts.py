"""How events, messages, schemas and arguments look to people and scripts."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from dimos_streams.cli.system.bus_traffic import Traffic
from dimos_streams.cli.system.message_text import to_lines
from dimos_streams.cli.terminal.call_counts import CallCounts
from dimos_streams.cli.terminal.output import duration, table_lines, write_json
from dimos_streams.cli.terminal.reporter import JsonReporter, TextReporter
from dimos_streams.cli.terminal.screen import PlainScreen, ScreenLine
from dimos_streams.cli.terminal.skill_arguments import parse_arguments
from dimos_streams.cli.terminal.skill_text import moving, signature
from dimos_streams.clock import VIRTUAL_EPOCH_US
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError
from dimos_streams.messages.base import to_json_value
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.event import EventType, ToolEvent
from tests.helpers import run_virtual


def event(
    type: EventType, text: str = "", *, call_id: str = "c1", skill: str = "follow", at: float = 0, **data: Any
) -> ToolEvent:
    return ToolEvent(
        utime=VIRTUAL_EPOCH_US + round(at * 1e6),
        call_id=call_id,
        seq=1,
        type=type,
        module="m",
        skill=skill,
        caller="cli",
        text=text,
        data=data,
    )


def said(role: str, text: str, number: int) -> ToolEvent:
    return event("update", text, skill="say", entry={"role": role, "text": text, "number": number})


def shown(*events: ToolEvent, with_data: bool = False) -> None:
    async def show() -> None:
        reporter = TextReporter(PlainScreen(), with_data=with_data)
        for each in events:
            reporter.tool_event(each)

    run_virtual(show())


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_call_from_open_to_close(capsys: pytest.CaptureFixture[str]) -> None:
    shown(
        event("open", arguments={"description": "red", "timeout_s": 3}),
        event("update", "Found", at=1.5),
        event("close", "done", at=2, outcome="completed"),
    )
    assert lines_of(capsys) == [
        '    0.00  follow            began (description="red", timeout_s=3)  [c1]',
        "    1.50  follow            Found",
        "    2.00  follow            completed",
    ]


def test_a_result_that_is_the_word_done_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown(event("close", "done", outcome="completed", result="done"))
    assert lines_of(capsys) == ["    0.00  follow            completed: done"]


def test_a_call_that_does_not_complete_shows_how_far_it_came_and_what_it_returned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [event("progress", f"step {n}", at=n / 10) for n in range(1, 14)]
    shown(*steps, event("close", "it ran longer than 2 s", outcome="timed_out", result={"legs": 4}), with_data=True)
    assert [line[28:] for line in lines_of(capsys)] == [
        "… step 1",
        "… step 11",
        "… step 13",
        'timed_out: it ran longer than 2 s  (result={"legs": 4})',
    ]
    shown(*steps[:11], event("close", "the caller", outcome="cancelled", result=None), with_data=True)
    assert [line[28:] for line in lines_of(capsys)] == ["… step 1", "… step 11", "cancelled: the caller"]
    shown(*steps, event("close", "4 legs", outcome="completed", result={"legs": 4}), with_data=True)
    assert [line[28:] for line in lines_of(capsys)] == ["… step 1", "… step 11", "completed: 4 legs"]


def test_progress_in_a_pipe_is_thinned_for_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    for call_id in ("c1", "c2"):
        shown(*(event("progress", f"step {n}", call_id=call_id, at=n / 10) for n in range(25)))
        assert [line.split()[-1] for line in lines_of(capsys)] == ["0", "10", "20"]


def test_progress_in_a_pipe_that_stays_the_same_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["held", "held", "held", "free", "free", "held"]
    shown(*(event("progress", text, at=second * 2) for second, text in enumerate(texts)))
    assert [line.split()[-1] for line in lines_of(capsys)] == ["held", "free", "held"]
    shown(event("progress", "held"), event("close", "done", outcome="completed"), event("progress", "held", at=9))
    assert [line.split()[-1] for line in lines_of(capsys)] == ["held", "completed", "held"]


def test_progress_in_a_pipe_goes_on_after_a_step_back_of_the_clock(capsys: pytest.CaptureFixture[str]) -> None:
    async def show() -> None:
        reporter = TextReporter(PlainScreen())
        for number in range(16):
            reporter.tool_event(event("progress", f"step {number}", at=number / 10 - 3600 * (number > 4)))
            await asyncio.sleep(0.1)

    run_virtual(show())
    assert [line.split()[-1] for line in lines_of(capsys)] == ["0", "10"]


def test_two_open_calls_of_a_skill_have_different_labels(capsys: pytest.CaptureFixture[str]) -> None:
    shown(event("update", "one"), event("update", "two", call_id="c2"), event("close", outcome="lost"))
    shown(event("update", "three", call_id="c3"))
    assert [line[10:].split("  ")[0] for line in lines_of(capsys)] == ["follow", "follow #2", "follow", "follow"]


def test_the_conversation_is_shown_once_and_without_what_tool_streams_show(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown(
        event("open", skill="say", arguments={"text": "go"}),
        said("operator", "go", 1),
        said("assistant", "I go", 2),
        said("assistant", "I go", 2),
        said("tool", "went", 3),
        said("error", "the model is away", 4),
        event("close", "I went", skill="say", outcome="completed"),
        event("close", "withdrawn", skill="say", outcome="cancelled"),
    )
    assert [line[10:] for line in lines_of(capsys)] == [
        "you               go",
        "agent             I go",
        "agent             error: the model is away",
        "agent             cancelled: withdrawn",
    ]


def test_a_conversation_of_which_anybody_on_the_bus_has_made_something_else_is_shown_as_far_as_it_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries: list[Any] = [{"role": "assistant", "text": "Hi", "number": number} for number in ("x", None, [1], {})]
    events = [
        *(event("open", skill="say", arguments=arguments) for arguments in ([1], "text", None)),
        *(event("update", skill="say", entry=entry) for entry in [*entries, [], "Hi"]),
    ]
    shown(*events)
    assert lines_of(capsys) == ["    0.00  agent             Hi"] * len(entries)
    counts = CallCounts()
    for each in events:
        counts.count(each)
    assert str(counts) == "no calls"


def test_events_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    async def show() -> None:
        JsonReporter().tool_event(event("close", "lost it", at=1, outcome="lost"))

    run_virtual(show())
    (line,) = lines_of(capsys)
    found = json.loads(line)
    assert (found["kind"], found["time_s"], found["type"]) == ("event", 1.0, "close")
    assert found["data"] == {"outcome": "lost"}


def test_what_came_before_the_command_is_timed_from_there(capsys: pytest.CaptureFixture[str]) -> None:
    shown(event("update", "Found", at=-90), event("update", "Lost", at=1.5))
    assert [line[:8] for line in lines_of(capsys)] == ["    0.00", "   91.50"]


def test_what_another_clock_has_to_come_is_timed_as_now(capsys: pytest.CaptureFixture[str]) -> None:
    shown(event("update", "Found"), event("update", "Lost", at=432_000))
    assert [line[:8] for line in lines_of(capsys)] == ["    0.00", "    0.00"]


def test_data_of_updates_is_on_the_line_where_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    async def show(*, with_data: bool) -> None:
        reporter = TextReporter(PlainScreen(), with_data=with_data)
        for data in (
            {},
            {"score": 0.123456, "box": [1 / 3, 2], "of": {"m": 2 / 3}},
            {"a": "a\u2028" * 99, "b": "b" * 99},
        ):
            reporter.tool_event(event("update", "Found", **data))

    for with_data in (False, True):
        run_virtual(show(with_data=with_data))
    *bare, plain, rounded, long = (line[28:] for line in lines_of(capsys))
    assert (bare, plain) == (["Found"] * 3, "Found")
    assert rounded == 'Found  (score=0.1235, box=[0.3333, 2], of={"m": 0.6667})'
    assert long.startswith(r'Found  (a="a\u2028a\u2028')
    assert long.endswith("...)")


def test_counts() -> None:
    counts = CallCounts()
    assert str(counts) == "no calls"
    for each in (
        event("open"),
        event("close", outcome="completed"),
        event("close", call_id="c2", outcome="lost"),
        event("open", call_id="c3"),
        event("close", skill="say", call_id="c4", outcome="completed"),
    ):
        counts.count(each)
    assert str(counts) == "3 calls: 1 completed, 1 lost, 1 open"


def test_a_call_of_a_model_that_never_begins_is_shown_and_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    def answered(number: int, **more: object) -> ToolEvent:
        entry = {"role": "tool", "number": number, "text": "no skill 'fly'", "skill": "fly", **more}
        return event("update", "no skill 'fly'", skill="say", entry=entry)

    events = [
        answered(1, is_error=True),
        answered(1, is_error=True),  # of the same conversation, in another mission's call
        answered(2, is_error=True, call_id="c9"),
        answered(3),
    ]
    shown(*events)
    assert lines_of(capsys) == ["    0.00  agent             could not call fly: no skill 'fly'"]
    counts = CallCounts()
    for each in events:
        counts.count(each)
    assert str(counts) == "1 call: 1 refused"


@pytest.mark.parametrize("why_not", ["no skill 'fly'", "it is too " + 80 * "very " + "far"], ids=["short", "long"])
def test_a_refusal_is_shown_once_and_at_the_end(why_not: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"role": "tool", "number": 1, "text": why_not, "skill": "fly", "is_error": True}
    repeated = why_not if len(why_not) <= 300 else f"{why_not[:299]}…"
    answer = {"role": "assistant", "number": 2, "text": f"fly: {repeated}\nI stay here"}
    why = f"the mission did not complete: call_failed (fly: {why_not}); still there"
    shown(
        event("update", skill="say", entry=refused),
        event("update", skill="say", entry=answer),
        event("update", skill="say", entry={**answer, "number": 3, "text": f"fly: {repeated}"}),
        event("close", why, skill="say", outcome="failed"),
    )
    assert [line[28:] for line in lines_of(capsys)] == [
        f"could not call fly: {why_not}",
        "I stay here",
        f"failed: the mission did not complete: call_failed ({shortened(f'fly: {why_not}', 120)}); still there",
    ]


def test_whose_mission_has_failed_is_said_where_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    def said(call_id: str, text: str) -> ToolEvent:
        return event("open", skill="say", call_id=call_id, arguments={"text": text})

    def failed(call_id: str) -> ToolEvent:
        return event("close", "so", skill="say", call_id=call_id, outcome="failed")

    shown(said("c1", "dance"), failed("c1"))
    assert [line[28:] for line in lines_of(capsys)] == ["failed: so"]
    shown(said("c1", "dance"), failed("c0"), said("c2", "sing"), failed("c1"), failed("c2"))
    assert [line[28:] for line in lines_of(capsys)] == [
        "what was said before: failed: so",
        "'dance': failed: so",
        "'sing': failed: so",
    ]


def test_no_line_of_a_text_passes_for_one_of_the_commands_own() -> None:
    forged = f"done\r\nso far\n{ScreenLine(1, 'run', 'stopping')}\u2028    1.00  run\x85    1.00  run\rrun\n"
    first, *further = str(ScreenLine(1, "agent", forged)).split("\n")
    assert first.endswith("  done")
    assert [line[:28].strip() for line in further] == ["", ""]
    assert further[1].endswith("stopping\\u2028    1.00  run\\x85    1.00  run\\rrun")


def test_lines_are_wrapped_below_their_text() -> None:
    line = ScreenLine(1, "agent", "some words that go on\nand /a/path/that/is/longer/than/a/line")
    assert "".join(line.parts(50)).splitlines() == [
        "    1.00  agent             some words that go on",
        "                            and",
        "                            /a/path/that/is/longer/than/a/line",
    ]


def test_wide_characters_have_no_text_go_on_at_the_left_edge() -> None:
    line = ScreenLine(1, "agent", "\u4e00" * 26 + "    0.99  you  go on")
    assert "".join(line.parts(80)).splitlines() == [
        "    1.00  agent             " + "\u4e00" * 26,
        "                            0.99  you  go on",
    ]
    rows = [("CALL", "LAST WORD"), ("\u4e00", "\U0001f600" * 14 + " c2    go_to  completed")]
    assert table_lines(rows, 36) == [
        "CALL  LAST WORD",
        "\u4e00    " + "\U0001f600" * 14,
        "      c2    go_to  completed",
    ]


def test_a_tab_in_a_table_is_a_blank() -> None:
    assert table_lines([("a\tb", "c\td")], 30) == ["a b  c d"]


def test_on_a_narrow_terminal_texts_stand_below_their_label() -> None:
    line = ScreenLine(1, "agent", "so far, so good" + " " * 11 + "0.99  you  go on")
    assert "".join(line.parts(30)).splitlines() == [
        "    1.00  agent",
        "  | so far, so good",
        "  | 0.99  you  go on",
    ]


def test_messages() -> None:
    twist = Twist(linear=Vector3(x=0.5))
    assert list(to_lines(twist)) == ["linear: {x: 0.5, y: 0, z: 0}", "angular: {x: 0, y: 0, z: 0}"]
    scan = LaserScan(ranges=[1.0] * 360)
    assert "ranges: [1, 1, 1, 1, 1, 1, 1, 1, ... 360 in all]" in list(to_lines(scan))
    assert len(to_json_value(LaserScan(ranges=[float("nan")] * 360))["ranges"]) == 360
    assert to_json_value(LaserScan(ranges=[float("nan")]))["ranges"] == [None]
    assert to_json_value(Image(data=b"abc"))["data"] == "YWJj"
    assert "data: <3 bytes>" in list(to_lines(Image(data=b"abc")))


STRING = {"properties": {"text": {"type": "string"}}}


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("n=3", 3),
        ("n=true", True),
        ("n=[1, 2]", [1, 2]),
        ("n={a: b}", {"a": "b"}),
        ("n=some words", "some words"),
        ("n=a=b", "a=b"),
        ("n=[", "["),
        ("n=", None),
        ("text=3", "3"),
        ("text=person: red", "person: red"),
        ('text="quoted"', "quoted"),
        ("text=", ""),
    ],
)
def test_arguments(assignment: str, value: object) -> None:
    assert list(parse_arguments([assignment], '{"m": 0}', STRING).values())[-1] == value


@pytest.mark.parametrize(("assignments", "as_json"), [(["n"], None), (["=3"], None), ([], "nonsense"), ([], "3")])
def test_bad_arguments(assignments: list[str], as_json: str | None) -> None:
    with pytest.raises(UserError):
        parse_arguments(assignments, as_json, {})


@pytest.mark.parametrize(("assignments", "as_json"), [(["n=1", " n=2"], None), (["n=2"], '{"n": 1}')])
def test_an_argument_that_is_given_twice_is_named(assignments: list[str], as_json: str | None) -> None:
    with pytest.raises(UserError, match="n=2': 'n' is given already; give each argument once"):
        parse_arguments(assignments, as_json, {})


def test_who_names_a_part_of_an_argument_learns_how_it_is_given() -> None:
    schema = {"properties": {"order": {"type": "object"}, "a.b": {}}}
    with pytest.raises(UserError, match=r"'order' is given as a whole: --arg 'order=\{size: \{x: 2\}\}'$"):
        parse_arguments(["order.size.x=2"], None, schema)
    assert parse_arguments(["a.b=2", "other.b=3"], None, schema) == {"a.b": 2, "other.b": 3}


def test_broken_yaml_is_named_where_no_text_is_taken() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    for schema in ({"type": "object"}, {"type": ["array", "null"]}, {"anyOf": [number, {"type": "null"}]}):
        with pytest.raises(UserError, match=r"^--arg 'bed=\{x: 1': not valid YAML: expected ',' or '\}'"):
            parse_arguments(["bed={x: 1"], None, {"properties": {"bed": schema}})
    for schema in (text, {}, {"type": ["string", "null"]}, {"anyOf": [number, text]}, {"$ref": "#/$defs/Bed"}):
        assert parse_arguments(["bed={x: 1"], None, {"properties": {"bed": schema}}) == {"bed": "{x: 1"}


def test_an_argument_is_a_text_where_a_reference_says_so() -> None:
    schema = {"properties": {"name": {"$ref": "#/$defs/Name"}, "any": True}, "$defs": {"Name": {"type": "string"}}}
    assert parse_arguments(["name=45", "any=45"], None, schema) == {"name": "45", "any": 45}


def test_an_empty_argument_is_refused_where_neither_a_text_nor_null_is_taken() -> None:
    number, null = {"type": "number"}, {"type": "null"}
    for schema in (number, {"type": ["array", "object"]}, {"anyOf": [number, {"type": "boolean"}]}):
        with pytest.raises(UserError, match=r"^--arg 'times= ': it is empty; "):
            parse_arguments(["times= "], None, {"properties": {"times": schema}})
    for schema in (null, {}, {"type": ["number", "null"]}, {"anyOf": [number, null]}):
        assert parse_arguments(["times="], None, {"properties": {"times": schema}}) == {"times": None}


def test_signatures() -> None:
    schema = {
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}},
            "how": {"enum": ["fast", "slow"], "default": "fast"},
            "then": {"anyOf": [{"$ref": "#/$defs/Then"}, {"type": "null"}], "default": None},
            "plant": {"enum": ["rose", "öl"], "title": "Plant", "type": "string"},
            "whatever": {},
        }
    }
    assert signature(schema) == (
        'names: array of string, how: "fast" | "slow" = "fast", then: Then | null = null, plant: "rose" | "öl",'
        " whatever: any"
    )


def test_what_a_skill_moves() -> None:
    def shown(**traits: Any) -> str:
        return moving(SkillInfo(name="s", description="", parameters={}, **traits))

    assert shown() == "no"
    assert shown(motion=True, resources=("pump",)) == shown(resources=("robot1/base",)) == "yes"
    assert shown(resources=("pump",)) == "may (holds pump)"
    assert shown(resources=("robot1/pump", "valve", "arm")) == "may (holds robot1/pump, valve and arm)"


def test_tables() -> None:
    assert table_lines([("A", "B"), ("longer", "x")]) == ["A       B", "longer  x"]


def test_traffic() -> None:
    traffic = Traffic("/a#std_msgs.String")
    for number in range(11):
        traffic.add(100, number / 10)
    assert traffic.row(2.0) == ("/a", "10.0 Hz", "550 B/s", "100 B", "std_msgs.String")
    assert traffic.interval_text() == "every 100.0 to 100.0 ms"
    lonely = Traffic("/b")
    lonely.add(5_000_000, 1.0)
    for at in (1.0, 1.000001):
        lonely.add(5_000_000, at)
    assert lonely.row(2.0)[1] == "1.5 Hz", "what came at once tells no rate"


def test_durations() -> None:
    assert [duration(each) for each in (2.5, 420.0, 18_000.0, 259_200.0)] == ["2.50 s", "7 min", "5 h", "3 days"]


def test_one_message_counts_over_the_time_listened() -> None:
    lonely = Traffic("/b")
    lonely.add(5_000_000, 1.0)
    assert lonely.row(2.0) == ("/b", "0.5 Hz", "2.5 MB/s", "5.0 MB", "?")


def test_looking_at_an_agent_is_not_shown_as_something_that_happens(capsys: pytest.CaptureFixture[str]) -> None:
    look = [
        event("open", skill="approvals", arguments={}),
        event("close", "[]", skill="approvals", outcome="completed"),
    ]
    robot = ToolEvent(**{**look[0].to_dict(), "module": "robot1/agent", "skill": "robot1_approvals"})
    shown(*look, robot, event("open", skill="count_approvals", call_id="c2", arguments={}))
    assert [line.split()[1] for line in lines_of(capsys)] == ["count_approvals"]
    counts = CallCounts()
    for each in look:
        counts.count(each)
    assert str(counts) == "no calls"


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_no_command_writes_json_that_others_can_not_read(value: float, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"amount": value})
    assert not capsys.readouterr().out
