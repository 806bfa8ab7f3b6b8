"""Comparing what a module gave with what it gives now."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.regression.comparison import PROGRESS as OF_PROGRESS
from dimos_streams.regression.comparison import Comparison
from dimos_streams.regression.differences import value_differences
from dimos_streams.regression.matching import StreamResult
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.recording.logs import START


def packed(seq: int, text: str = "", **data: Any) -> bytes:
    type = "open" if seq == 1 else "update"
    return pack_event(
        ToolEvent(
            utime=START,
            call_id="c1",
            seq=seq,
            type=type,  # type: ignore[arg-type]
            module="m",
            skill="s",
            caller="c",
            text=text or f"event {seq}",
            data=data,
        )
    )


def event(seq: int, type: EventType, after_s: float, text: str = "", **data: Any) -> tuple[int, bytes]:
    """An event of a call, and when it came."""
    utime = START + round(after_s * 1e6)
    return utime, pack_event(
        ToolEvent(
            utime=utime, call_id="c1", seq=seq, type=type, module="m", skill="s", caller="c", text=text, data=data
        )
    )


def results(recorded: list[tuple[int, bytes]], replayed: list[tuple[int, bytes]]) -> dict[str, StreamResult]:
    comparison = Comparison(Tolerances())
    for utime, data in recorded:
        comparison.recorded(EVENTS, data, utime, optional=False)
    for utime, data in replayed:
        comparison.replayed(EVENTS, data, utime, optional=utime > recorded[-1][0])
    return {result.stream: result for result in comparison.finish()}


def compared(recorded: list[bytes], replayed: list[bytes]) -> Comparison:
    comparison = Comparison(Tolerances(time_s=1.0))
    for number, data in enumerate(recorded):
        comparison.recorded(EVENTS, data, START + number, optional=False)
    for number, data in enumerate(replayed):
        comparison.replayed(EVENTS, data, START + number, optional=False)
    return comparison


def test_events_that_were_logged_twice_or_out_of_order_count_once() -> None:
    given = [packed(seq) for seq in (1, 2, 3, 4)]
    # A bus doubles and reorders datagrams, and events that a receiver asks for again come twice.
    for order in ([0, 1, 1, 2, 3], [0, 0, 1, 2, 3], [0, 2, 2, 1, 3], [0, 1, 2, 3, 1, 0], [0, 3, 2, 1]):
        (result,) = compared([given[index] for index in order], given).finish()
        assert (result.matched, result.wrong) == (4, 0), order
        (result,) = compared(given, [given[index] for index in order]).finish()
        assert (result.matched, result.wrong) == (4, 0), order


@pytest.mark.feature("F3")
@pytest.mark.parametrize("time_s", [0.0, 0.25])
@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_who_was_first_to_cancel_a_call_is_not_compared_where_times_may_differ(time_s: float, outcome: str) -> None:
    """An operator who cancels a call and its child ends the child, or its parent does, whoever is heard first."""
    comparison = Comparison(Tolerances(time_s=time_s))
    for number, text in enumerate(("an operator cancels it", "its parent has ended")):
        say = (comparison.recorded, comparison.replayed)[number]
        for utime, data in (event(1, "open", 0.0), event(2, "close", 1.0, text, outcome=outcome)):
            say(EVENTS, data, utime, optional=False)
    (result,) = comparison.finish()
    agrees = outcome == "cancelled" and time_s > 0
    assert (result.matched, result.wrong, bool(result.close)) == ((2, 0, False) if agrees else (1, 1, True))


def test_progress_that_came_twice_and_too_early_has_the_time_at_which_it_first_came() -> None:
    early, late = START + 10, START + 5_000_000
    comparison = Comparison(Tolerances())
    given = event(3, "progress", 0.0)[1]
    for utime, data in ((START, packed(1)), (early, given), (late, given), (late + 1, packed(2))):
        comparison.recorded(EVENTS, data, utime, optional=False)
    for utime, data in ((START, packed(1)), (START, packed(2)), (early, given)):
        comparison.replayed(EVENTS, data, utime, optional=False)
    (progress,) = (result for result in comparison.finish() if result.stream.endswith(OF_PROGRESS))
    assert (progress.matched, progress.wrong) == (1, 0)


def test_progress_that_is_missing_is_not_taken_for_what_follows_it() -> None:
    opened, *given = event(1, "open", 0.0), *(event(seq, "progress", seq, f"{seq} steps") for seq in (2, 3, 4))
    changed = [(given[2][0], event(3, "progress", 4, "4 steps")[1])]
    progress = results([opened, *given], [opened, given[0], *changed])[f"s [c1]{OF_PROGRESS}"]
    assert (progress.matched, progress.missing, progress.different) == (2, 1, 0)
    assert progress.passed(0.5), "it may be wrong to a degree, which no other event may"


def test_what_came_behind_a_lost_event_is_compared_in_its_order() -> None:
    given = [packed(seq) for seq in (1, 3, 4)]
    for one, other in (([0, 2, 1], [0, 1, 2]), ([0, 1, 2], [0, 2, 1])):
        (result,) = compared([given[index] for index in one], [given[index] for index in other]).finish()
        assert (result.matched, result.wrong) == (3, 0)


def test_what_others_have_sent_is_known_as_soon_as_nothing_can_agree_any_more() -> None:
    left: list[str] = []
    comparison = Comparison(Tolerances(time_s=1.0), on_left=lambda channel, output: left.append(channel))
    comparison.recorded("/x", b"theirs", START, optional=True)
    comparison.settle(START + 1_000_000)
    assert left == []
    comparison.settle(START + 1_000_001)
    assert left == ["/x"], "what is kept does not grow with the log"


def test_what_is_wrong_with_a_skills_code_is_not_compared_besides() -> None:
    wrong = {"misfit": "skill 's' has returned null", "unawaited": "skill 's' does not await `x()` (a.py:1)"}
    (result,) = compared([packed(1), packed(2)], [packed(1), packed(2, **wrong)]).finish()
    assert (result.matched, result.wrong) == (2, 0)
    (result,) = compared([packed(1), packed(2)], [packed(1), packed(2, misfits="x")]).finish()
    assert result.wrong == 1


def test_an_event_that_is_missing_or_another_is_a_difference() -> None:
    given = [packed(seq) for seq in (1, 2, 3)]
    assert compared(given, given[:2]).finish()[0].wrong == 1
    assert compared([given[0], given[2]], [given[0]]).finish()[0].wrong == 1, "what came behind a lost one counts too"
    assert compared([given[0]], [given[0], given[2]]).finish()[0].wrong == 1
    assert compared(given, [given[0], packed(2, "else"), given[2]]).finish()[0].wrong == 1


OPENED, PROGRESS = event(1, "open", 0.0), event(2, "progress", 0.5, "half")
DONE = event(3, "close", 1.0, "4 beds", outcome="completed", result=4)


def test_a_call_that_ends_otherwise_differs_from_the_moment_of_the_earlier_end() -> None:
    refused = event(2, "close", 0.1, "no such skill", outcome="rejected")
    found = results([OPENED, PROGRESS, DONE], [OPENED, refused])
    call, progress = found["s [c1]"], found["s [c1] progress"]
    assert call.close == 'recorded completed "4 beds", replayed rejected "no such skill"'
    assert call.first is not None
    assert progress.first is not None
    assert call.first.utime == refused[0] < progress.first.utime
    assert progress.close == ""


def test_a_call_that_ends_on_one_side_only_says_so() -> None:
    assert results([OPENED, DONE], [OPENED])["s [c1]"].close == 'recorded completed "4 beds", replayed nothing'
    ended = results([OPENED, event(2, "update", 2.0)], [OPENED, DONE])["s [c1]"]
    assert ended.close == 'recorded nothing, replayed completed "4 beds"'
    after_the_log = results([OPENED, event(2, "update", 0.5)], [OPENED, event(2, "update", 0.5), DONE])["s [c1]"]
    assert (after_the_log.close, after_the_log.wrong) == ("", 0)


def test_a_call_that_ends_alike_but_at_another_time_says_nothing_of_its_end() -> None:
    late = event(3, "close", 1.5, "4 beds", outcome="completed", result=4)
    call = results([OPENED, PROGRESS, late], [OPENED, PROGRESS, DONE])["s [c1]"]
    assert (call.close, call.different) == ("", 1)


@pytest.mark.parametrize(
    ("recorded", "replayed", "paths"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.05, 3.0], []),
        ([1.0, 2.0, 3.0], [1.0, 2.5, 3.5], ["v[1]", "v[2]"]),
        ([1.0], [1.0, 2.0], ["v"]),
        ({"a": {"b": 1.0}, "c": "x"}, {"a": {"b": 2.0}, "c": "x"}, ["v.a.b"]),
        ({"a": 1.0}, {"c": 1.0}, ["v.a", "v.c"]),
        ("2.00 m to go", "2.05 m to go", []),
        ("-2.00 m to go", "-2.05 m to go", []),
        ("2.00 m to go", "2.50 m to go", ["v"]),
        ("2.00 m to go", "2.00 deg to go", ["v"]),
        (float("nan"), float("nan"), []),
        (float("nan"), 1.0, ["v"]),
        (True, False, ["v"]),
        (None, 0.0, ["v"]),
        (10**400, 10**400, []),
        (10**400, 10**400 + 1, ["v"]),
        (10**400, 1.0, ["v"]),
        (1.0, -(10**400), ["v"]),
        (10**300, 0, ["v"]),
        (2**60, 2**60 + 1, ["v"]),
        (f"seed {10**400}", f"seed {10**400 + 1}", ["v"]),
    ],
)
def test_values_differ_by_more_than_is_allowed(recorded: Any, replayed: Any, paths: list[str]) -> None:
    found = value_differences("/c#std_msgs.String", "v", recorded, replayed, Tolerances(absolute=0.1))
    assert [difference.field for difference in found] == paths


@pytest.mark.parametrize(
    ("recorded", "replayed", "paths"),
    [
        ("1.0 m", "1.00 m", ["v"]),
        ("seed 9007199254740993", "seed 9007199254740992", ["v"]),
        ("2 m and 1 m", "2 m and 1 m", []),
        ({"a": None}, {}, ["v.a"]),
        ({}, {"a": None}, ["v.a"]),
        ({"a": None}, {"a": None}, []),
        (True, 1, ["v"]),
        (0.0, False, ["v"]),
        ([True, 2], [1, 2], ["v[0]"]),
        ([{"a": None}], [{}], ["v[0].a"]),
    ],
)
def test_without_tolerances_everything_must_be_equal(recorded: Any, replayed: Any, paths: list[str]) -> None:
    found = value_differences("/c#std_msgs.String", "v", recorded, replayed, Tolerances())
    assert [difference.field for difference in found] == paths


def test_a_key_that_one_side_lacks_is_shown_as_nothing() -> None:
    (found,) = value_differences("/c#std_msgs.String", "v", {"a": None}, {}, Tolerances())
    assert str(found) == "v.a: recorded null, replayed nothing"


def test_an_output_that_comes_at_another_time_is_reported_with_both_times() -> None:
    comparison = Comparison(Tolerances())
    comparison.recorded("/x", b"data", START, optional=False)
    comparison.replayed("/x", b"data", START + 2_000_000, optional=False)
    (result,) = comparison.finish()
    assert result.wrong >= 1
    assert result.matched == 0
