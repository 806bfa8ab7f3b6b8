"""A log is sorted into inputs of the modules under test, their outputs, and the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, SkillCancel
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.feed import Feed, ReplayLoop, run_with_feed
from dimos_streams.regression.rewrite import Rewriter
from dimos_streams.regression.scope import Scope, call_of, scope_of
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.recording.logs import START, raw, read_log, write_log

VEL = "/skill_vel#geometry_msgs.Twist"
WANTED = "/wanted_descriptions#std_msgs.String"


def scope(*modules: str) -> Scope:
    made = scope_of(resolve("robot-only"), modules, lambda channel: True)
    made.calls.add("own")
    return made


def said(module: str, type: EventType = "open", call_id: str = "c", data: dict[str, Any] | None = None) -> ToolEvent:
    return ToolEvent(
        utime=START, call_id=call_id, seq=1 if type == "open" else 2, type=type, module=module, skill="turn",
        caller="agent", text="", data={"outcome": "completed"} if type == "close" else data or {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("channel", "message", "role"),
    [
        (VEL, b"", "output"),
        ("/odom#nav_msgs.Odometry", b"", "input"),
        ("/color_image#sensor_msgs.Image", b"", "other"),
        ("POSE", b"", "other"),
        (REQUESTS, b"", "input"),
        (EVENTS, pack_event(said("follow")), "output"),
        (EVENTS, pack_event(said("drive")), "input"),
        (EVENTS, pack_event(said("follow", data={"refused": True})), "input"),
        (EVENTS, b"damaged", "other"),
        (STATUS, ModuleStatus(module="follow"), "other"),
        (STATUS, ModuleStatus(module="drive"), "input"),
        (CALLS, SkillCall(call_id="c", module="follow"), "input"),
        (CALLS, SkillCall(call_id="c", module="follow", parent="own"), "input"),
        (CALLS, SkillCall(call_id="c", module="drive", parent="own"), "other"),
        (CALLS, SkillCall(call_id="c", parent="own"), "output"),
        (CALLS, SkillCall(call_id="c", parent="another"), "other"),
        (CANCELS, SkillCancel(call_id="own"), "input"),
        (CANCELS, SkillCancel(call_id="another"), "other"),
        (CANCELS, b"damaged", "other"),
    ],
)
def test_roles(channel: str, message: Message | bytes, role: str) -> None:
    under_test = scope("follow")
    data = message if isinstance(message, bytes) else encode(message)
    assert under_test.role(channel, data) == role
    assert role != "output" or under_test.may_be_output(channel)


def test_what_the_modules_say_to_each_other_is_no_input() -> None:
    alone, both = scope("gate"), scope("gate", "follow", "drive")
    assert (alone.role(VEL, b""), both.role(VEL, b"")) == ("input", "output")
    assert alone.required == frozenset()
    assert both.required == {"/odom#nav_msgs.Odometry", "/detections#vision_msgs.Detection2DArray"}
    assert not alone.may_be_output("/odom#nav_msgs.Odometry")


def test_of_two_types_of_a_topic_the_recorded_one_is_required() -> None:
    poses = "/odom#geometry_msgs.PoseStamped"
    made = scope_of(resolve("robot-only"), ["drive"], lambda channel: channel != "/odom#nav_msgs.Odometry")
    assert poses in made.required
    assert made.role(poses, b"") == "input"


def test_what_was_not_recorded_is_reported() -> None:
    made = scope_of(resolve("robot-only"), ["follow"], lambda channel: channel != VEL)
    assert (set(made.outputs), set(made.left_out)) == ({WANTED}, {VEL})
    seen = scope_of(resolve("robot-only"), ["gate"], lambda channel: not channel.startswith("/scan#"))
    assert (set(seen.unrecorded), set(seen.required)) == ({"/scan#sensor_msgs.LaserScan"}, set())


def test_a_message_of_a_shared_channel_may_be_of_another_module_while_that_has_a_call() -> None:
    made = scope("follow")

    def event(data: bytes, after_us: int) -> LogEvent:
        return LogEvent(0, START + after_us, EVENTS, data, 0)

    def of_others(*after_us: int) -> list[bool]:
        return [made.may_be_of_others(VEL, START + after) for after in after_us]

    assert of_others(0) == [False], "no call of drive has begun"
    made.watch(event(pack_event(said("lookout")), 1))
    made.watch(event(pack_event(said("follow")), 1))
    made.watch(event(b"damaged", 1))
    assert of_others(2) == [False]
    assert made.may_be_of_others(WANTED, START + 2), "lookout writes there too"
    assert not made.may_be_of_others("/odom#nav_msgs.Odometry", START + 2)
    for call in ("a", "b"):
        made.watch(event(pack_event(said("drive", call_id=call)), 10))
    assert of_others(10, 1_000_000) == [True, True]
    made.watch(event(pack_event(said("drive", "close", "a")), 1_000_000))
    assert of_others(9_000_000) == [True]
    made.watch(event(pack_event(said("drive", "close", "b")), 9_000_000))
    assert of_others(9_000_001, 9_100_000, 9_100_001) == [True, True, False], "what it has sent at the end comes late"


def test_what_a_bridge_says_in_the_name_of_a_module_is_an_input() -> None:
    made = scope("follow", "drive")
    opened = pack_event(said("drive", data={"refused": False}))
    made.watch(LogEvent(0, START, EVENTS, opened, 0))
    assert made.role(EVENTS, pack_event(said("drive", "close"))) == "input"
    assert made.role(EVENTS, pack_event(said("drive", "close", "another"))) == "output"
    alone = scope("follow")
    alone.watch(LogEvent(0, START, EVENTS, opened, 0))
    assert not alone.may_be_of_others(VEL, START), "drive does nothing for a call that it was never asked to run"


def test_who_has_no_skills_may_send_at_any_time() -> None:
    gate = resolve("robot-only").modules["gate"]
    second = gate.model_copy(update={"name": "second", "remap": {"cmd_vel": "skill_vel"}})
    made = scope_of(resolve("robot-only").with_modules([second]), ["follow"], lambda channel: True)
    assert made.may_be_of_others(VEL, START)


def test_a_call_is_made_up_of_what_its_first_event_says() -> None:
    opened = said("drive", data={"arguments": {"angle_deg": 90}, "parent": "p"})
    call = decode(SkillCall, call_of(opened), CALLS)
    reported = (call.utime, call.call_id, call.module, call.skill, call.caller, call.parent)
    assert reported == (START, "c", "drive", "turn", "agent", "p")
    assert json.loads(call.arguments_json) == {"angle_deg": 90}
    call = decode(SkillCall, call_of(said("drive")), CALLS)
    assert (call.parent, json.loads(call.arguments_json)) == ("", {})


Given = list[tuple[int, str]]
"""When, in µs after the start, and what: ``out`` for an output of the modules, ``-`` for what is none of theirs."""


def fed(given: Given, *, timers: tuple[int, ...] = ()) -> list[tuple[int, str]]:
    """The order of what happens: inputs, what they set off a turn of the loop later, timers, and the end."""
    happened: list[tuple[int, str]] = []

    def note(what: str) -> None:
        happened.append((clock.utime() - START, what))

    def events() -> Iterator[LogEvent]:
        for number, (after, what) in enumerate(given):
            yield LogEvent(number, START + after, what, b"", number)

    def publish(event: LogEvent) -> bool:
        note(event.channel)
        asyncio.get_running_loop().call_soon(note, f"after {event.channel}")
        return event.channel == "stop"

    def kind(event: LogEvent) -> bool | None:
        return None if event.channel == "out" else event.channel != "-"

    async def main(loop: ReplayLoop) -> None:
        for after in timers:
            loop.call_at(after / 1e6, note, "timer")
        feed = loop.feed = Feed(events(), kind, publish)
        assert not feed.is_over(START)
        await feed.done
        assert feed.is_over(clock.utime())
        assert not feed.is_over(clock.utime() - 1)
        note("end")
        await asyncio.sleep(1e-6)
        note("later")

    run_with_feed(main, START)
    return happened


def test_inputs_come_when_they_were_recorded_and_the_end_is_that_of_the_log() -> None:
    assert fed([(10, "a"), (2_000_030, "b"), (2_000_100, "-")]) == [
        (10, "a"),
        (10, "after a"),
        (2_000_030, "b"),
        (2_000_030, "after b"),
        (2_000_100, "end"),
        (2_000_101, "later"),
    ]


def test_timers_of_the_same_instant_come_first() -> None:
    assert [what for _, what in fed([(10, "a"), (20, "-")], timers=(5, 10, 15))] == [
        "timer", "timer", "a", "after a", "timer", "end", "later",
    ]  # fmt: skip


def test_inputs_of_one_instant_come_in_one_go_unless_the_modules_have_said_something_between() -> None:
    together = fed([(10, "a"), (10, "-"), (10, "b"), (11, "c")])
    assert [what for _, what in together[:4]] == ["a", "b", "after a", "after b"]
    apart = fed([(10, "a"), (10, "out"), (10, "b"), (11, "c")])
    assert [what for _, what in apart[:4]] == ["a", "after a", "b", "after b"]
    ended = fed([(10, "a"), (10, "stop"), (10, "b"), (11, "c")])
    assert [what for _, what in ended[:6]] == ["a", "stop", "after a", "after stop", "b", "after b"]
    before = fed([(10, "a"), (10, "out"), (11, "b"), (11, "c")])
    assert [what for _, what in before[:6]] == ["a", "after a", "b", "c", "after b", "after c"]


def test_where_a_clock_was_set_back_time_goes_on() -> None:
    inputs = [(at, what) for at, what in fed([(10, "a"), (4, "b"), (4, "-"), (12, "c")]) if "after" not in what]
    assert inputs == [(10, "a"), (10, "b"), (12, "c"), (12, "end"), (13, "later")]


def test_a_log_is_rewritten_in_the_order_of_time(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", [(START, "/old", b"")])
    before = path.read_bytes()
    for keep in (False, True):
        with Rewriter(path, Tolerances(time_s=0.01)) as rewriter:
            rewriter.add(START, "/z", b"0")
            rewriter.add(START, "/a", b"1")
            rewriter.flush(START + 10_000)
            rewriter.add(START - 1, "/m", b"2")  # late by no more than is allowed
            rewriter.flush(START + 15_000)
            rewriter.add(START + 4_999, "/x", b"late by more than the window that is over")
            rewriter.add(START + 20_000, "/b", b"4")
            rewriter.add(START + 6_000, "/c", b"3")
            assert path.read_bytes() == before
            if keep:
                rewriter.finish()
        assert list(tmp_path.iterdir()) == [path]
        assert (path.read_bytes() == before) is not keep
    assert [(utime - START, channel) for utime, channel, _ in raw(read_log(path))] == [
        (-1, "/m"), (0, "/z"), (0, "/a"), (4_999, "/x"), (6_000, "/c"), (20_000, "/b"),
    ]  # fmt: skip


def test_what_is_rewritten_is_written_as_soon_as_nothing_can_come_before_it(tmp_path: Path) -> None:
    """Memory holds no more than the time tolerance."""
    path = write_log(tmp_path / "a.lcmlog", [(START, "/old", b"")])
    with Rewriter(path, Tolerances(time_s=0.01)) as rewriter:
        for second in range(5):
            rewriter.add(START + second * 1_000_000, "/x", bytes(200_000))
            rewriter.flush(START + second * 1_000_000)
        assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file != path) > 600_000
        rewriter.finish()
    assert [event.utime for event in read_log(path)] == [START + second * 1_000_000 for second in range(5)]
