"""What a receiver keeps of calls: what came too early and what is missing, within bounds."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.receiving import received_calls, reorder_buffer
from dimos_streams.tool_stream.receiving.received_call import ReceivedCall, ResumePoint
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event


def event(seq: int, instance: str = "", type: EventType = "update", text: str = "") -> ToolEvent:
    return ToolEvent(
        utime=1, call_id="c", seq=seq, type=type, module="m", skill="s", caller="c", text=text, instance=instance
    )


def packed(seq: int, size: int, instance: str = "") -> bytes:
    """An event of so many bytes."""
    least = len(pack_event(event(seq, instance)))
    return pack_event(event(seq, instance, text="x" * (size - least)))


def keep(call: ReceivedCall, seq: int, size: int = 200, instance: str = "") -> None:
    call.pending.keep(event(seq, instance), packed(seq, size, instance))


def new_call(calls: ReceivedCalls, name: str = "c", *, delivered: int = 0, unsolicited: bool = False) -> ReceivedCall:
    return calls.make(name, ResumePoint(delivered=delivered, unsolicited=unsolicited))


def ranges(seqs: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = found[-1][0], seq
        else:
            found.append((seq, seq))
    return found


@pytest.mark.slow
@given(
    st.integers(0, 5),
    st.sets(st.integers(6, 30)),
    st.lists(st.integers(6, 30)),
    st.integers(0, 35),
    st.integers(1, 4),
)
def test_what_is_missing_is_what_has_not_come(
    delivered: int, came: set[int], taken: list[int], highest: int, limit: int
) -> None:
    calls = ReceivedCalls()
    call, other = new_call(calls, delivered=delivered), new_call(calls)
    keep(other, 2)
    for seq in sorted(came, key=lambda seq: seq * 7 % 31):
        keep(call, seq, 200 + seq)
    for seq in taken:
        found = call.pending.pop(seq)
        assert (found.seq if found is not None else None) == (seq if seq in came else None)
        came.discard(seq)
    size = sum(200 + seq for seq in came)
    assert (call.pending.size, calls.pending_bytes) == (size, size + 200)
    call.highest = max([highest, *came])
    missing = [seq for seq in range(delivered + 1, call.highest + 1) if seq not in came]
    assert call.missing(100) == ranges(missing)
    assert call.missing(limit)[:limit] == ranges(missing)[:limit]
    assert len(call.missing(limit)) <= limit + 1
    assert call.pending.first == min(came, default=None)
    call.pending.clear()
    assert (call.pending.size, calls.pending_bytes, call.pending.first) == (0, 200, None)
    assert call.missing(100) == ranges(list(range(delivered + 1, call.highest + 1)))


def test_what_came_too_early_is_bounded_for_each_call_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reorder_buffer, "MAX_PENDING", 3)
    monkeypatch.setattr(received_calls, "PENDING_BYTES", 10_000)
    monkeypatch.setattr(received_calls, "ALL_PENDING_BYTES", 15_000)
    calls = ReceivedCalls()
    many, large, last = (new_call(calls) for _ in range(3))
    for seq in range(2, 9):
        keep(many, seq, 100)
    assert sorted(many.pending) == [2, 3, 4]
    for seq, size in ((2, 10_001), (3, 10_000), (4, 100)):
        keep(large, seq, size)
    assert sorted(large.pending) == [3]
    for seq, size in ((2, 4_701), (3, 4_700), (4, 100)):
        keep(last, seq, size)
    assert (sorted(last.pending), calls.pending_bytes) == ([3], 15_000)
    many.pending.pop(2)
    keep(last, 4, 100)
    assert (sorted(last.pending), calls.pending_bytes) == ([3, 4], 15_000)


def test_what_came_too_early_of_unsolicited_calls_takes_no_room_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_calls, "ALL_PENDING_BYTES", 1_000)
    monkeypatch.setattr(received_calls, "UNSOLICITED_PENDING_BYTES", 800)
    calls = ReceivedCalls()
    own = new_call(calls)
    unsolicited = [new_call(calls, unsolicited=True) for _ in range(9)]
    for forged in unsolicited:
        for seq in (2, 3):
            keep(forged, seq)
    assert [sorted(each.pending) for each in unsolicited] == [[2]] * 4 + [[]] * 5
    for seq in range(2, 9):
        keep(own, seq)
    assert (sorted(own.pending), calls.pending_bytes) == ([2, 3, 4, 5, 6], 1_800)
    unsolicited[0].pending.clear()
    keep(unsolicited[8], 2)
    assert (sorted(unsolicited[8].pending), calls.pending_bytes) == ([2], 1_800)


def test_no_more_ranges_are_looked_for_than_are_asked_for() -> None:
    call = new_call(ReceivedCalls(), delivered=1)
    for seq in (3, 5, 7):
        keep(call, seq)
    call.highest = 9
    assert call.missing(2) == [(2, 2), (4, 4)]
    assert call.missing(9) == [(2, 2), (4, 4), (6, 6), (8, 9)]


def test_of_what_came_too_early_nothing_is_left_when_it_is_dropped() -> None:
    calls = ReceivedCalls()
    call, other = new_call(calls), new_call(calls)
    for each in (call, other):
        keep(each, 3)
    for _ in range(2):
        call.pending.clear()
        assert (list(call.pending), call.pending.first, call.pending.size, calls.pending_bytes) == ([], None, 0, 200)


def test_the_call_that_was_silent_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_calls, "MAX_OPEN", 2)
    calls = ReceivedCalls()
    made = {name: new_call(calls, name, delivered=1) for name in "abc"}
    for name in "abac":
        calls.heard(made[name])
    assert [name for name in "abc" if calls.get(name) is not None] == ["a", "c"]


@pytest.mark.slow
def test_what_came_too_early_takes_no_more_memory_than_its_bytes() -> None:
    call = new_call(ReceivedCalls())
    data: dict[str, object] = {"deep": [{} for _ in range(15_000)]}
    large = pack_event(replace(event(2, "own"), data=data))
    tracemalloc.start()
    for seq in range(2, 22):
        call.pending.keep(replace(unpack_event(large), seq=seq), bytes(bytearray(large)))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken <= 20 * len(large) + 20_000
    found = call.pending.pop(2)
    assert found is not None
    assert (found.data, found.instance) == (data, "own")


def test_a_call_belongs_to_one_instance_and_what_others_sent_of_it_is_dropped() -> None:
    calls = ReceivedCalls()

    def call_named_by(instance: str, delivered: int) -> ReceivedCall:
        call = new_call(calls, delivered=delivered)
        call.highest, call.presumed_instance = 9, instance
        return call

    call = call_named_by("other", 1)
    for seq, instance in ((3, "own"), (5, "other"), (6, "own"), (8, "other")):
        keep(call, seq, instance=instance)
    assert call.assign("own") == 2
    assert (sorted(call.pending), call.pending.size, calls.pending_bytes, call.highest) == ([3, 6], 400, 400, 6)
    assert call.assign("own") == 0
    alone = call_named_by("other", 4)
    assert (alone.assign("own"), alone.highest) == (0, 4), "what others claimed does not count"
    sure = call_named_by("own", 4)
    assert (sure.assign("own"), sure.highest) == (0, 9)


def test_who_closed_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_calls, "MAX_OPEN", 2)
    monkeypatch.setattr(received_calls, "MAX_CLOSED", 2)
    monkeypatch.setattr(received_calls, "MAX_NAMED", 1)
    calls = ReceivedCalls()
    made = {name: new_call(calls, name) for name in "abcd"}
    for call in made.values():
        call.nack_at = 1.0
    assert calls.has_room_for_names
    calls.add(made["a"])
    assert (calls.has_room_for_names, len(calls), calls.get("a")) == (False, 1, made["a"])
    for name in "abca":
        calls.heard(made[name])
    assert calls.has_room_for_names
    assert not calls.forget_name(made["a"])
    assert [calls.get(name) for name in "abc"] == [made["a"], None, made["c"]]
    keep(made["c"], 3)
    for name in "ad":
        calls.heard(made[name])
    assert (calls.get("c"), calls.pending_bytes, made["c"].nack_at) == (None, 0, None)
    for name in "da":
        calls.close(made[name])
    assert len(calls) == 2
    made["e"] = calls.make("e", ResumePoint(closed=True))
    for name in "ed":
        calls.heard(made[name])
    assert [calls.get(name) for name in "ade"] == [None, made["d"], made["e"]]
    named = new_call(calls, "f")
    calls.add(named)
    assert calls.forget_name(named)
    assert (len(calls), calls.get("f")) == (2, None)


def test_calls_that_nobody_here_has_begun_push_out_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_calls, "MAX_UNSOLICITED_OPEN", 2)
    monkeypatch.setattr(received_calls, "MAX_UNSOLICITED_CLOSED", 1)
    calls = ReceivedCalls()
    for name, is_closed in (("open", False), ("closed", True)):
        calls.heard(calls.make(name, ResumePoint(delivered=1, closed=is_closed)))
    for number in range(5):
        forged = new_call(calls, f"forged{number}", unsolicited=True)
        calls.heard(forged)
        keep(forged, 3)
    assert (len(calls), calls.pending_bytes) == (4, 400), "what is forgotten keeps no bytes"
    for number in (3, 4):
        calls.close(calls.get(f"forged{number}") or forged)
    assert [name for name in ("open", "closed", "forged3", "forged4") if calls.get(name)] == [
        "open",
        "closed",
        "forged4",
    ]
