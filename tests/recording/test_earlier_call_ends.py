"""Until when a message may have come of a call that began before the log."""

from __future__ import annotations

import math

import pytest

from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.recorded.earlier_calls import EarlierCall, EarlierCalls, earlier_calls
from dimos_streams.regression.scope import MARGIN_US, Scope
from dimos_streams.tool_stream.event import EventType
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.wire.packing import EventPacker
from tests.recording.logs import START

WRITERS = {"/x": frozenset({"m"})}
SCOPE = Scope(
    plans=(), names=frozenset({"m"}), inputs=frozenset(), required=frozenset(), unrecorded=frozenset(),
    outputs=frozenset({"/x"}), left_out=frozenset(), sharers={}, writers=WRITERS,
)  # fmt: skip


def said(after_us: int, type: EventType, seq: int = 5) -> LogEvent:
    data = {"outcome": "completed"} if type == "close" else {}
    return LogEvent(
        0, START + after_us, EVENTS, EventPacker("call", "m", "s", "c", "").pack(1, seq, type, "", data), 0
    )


def beat(after_us: int, *calls: str) -> LogEvent:
    status = ModuleStatus(module="m", instance="mine", utime=START + after_us)
    status.call_ids, status.last_seqs = list(calls), [9] * len(calls)
    return LogEvent(0, START + after_us, STATUS, encode(status), 0)


def over_after(events: list[LogEvent]) -> int:
    """The last moment at which a message may have come of such a call, without the margin."""
    found = earlier_calls(events, SCOPE)
    assert "call" in found
    moments = [event.utime - START for event in events]
    (last,) = (
        after
        for after in moments
        if found.may_have_sent("/x", START + after + MARGIN_US)
        and not found.may_have_sent("/x", START + after + MARGIN_US + 1)
    )
    return last


def test_of_several_calls_of_a_module_the_last_one_counts() -> None:
    calls = {name: EarlierCall("m", over=over) for name, over in (("a", 10), ("b", 30), ("c", 20))}
    found = EarlierCalls(calls, WRITERS)
    assert [found.may_have_sent("/x", after + MARGIN_US) for after in (20, 30, 31)] == [True, True, False]
    assert not found.may_have_sent("/y", 0)


@pytest.mark.parametrize(
    "after_it",
    [
        [said(4_000_000, "close")],
        [beat(4_000_000, "call"), beat(5_000_000, "call")],
        [beat(4_000_000)],
    ],
    ids=["a close that is sent again", "heartbeats that name it until all have its close", "heartbeats without it"],
)
def test_a_call_is_over_at_its_close_whatever_is_said_of_it_later(after_it: list[LogEvent]) -> None:
    assert over_after([said(1_000_000, "update"), said(3_000_000, "close", 6), *after_it]) == 3_000_000


def test_a_call_without_a_close_is_over_when_a_heartbeat_does_not_name_it() -> None:
    assert over_after([beat(1_000_000, "call"), beat(2_000_000, "call"), beat(3_000_000)]) == 3_000_000
    found = earlier_calls([beat(1_000_000, "call")], SCOPE)
    assert found.may_have_sent("/x", START + 10**12), "nothing says that it is over"
    assert math.isinf(EarlierCall("m").over)
