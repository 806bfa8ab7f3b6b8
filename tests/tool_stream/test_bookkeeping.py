"""The tables of publishers, receivers and directories agree with the simplest model of them."""

from __future__ import annotations

import asyncio
import datetime
import json
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.liveness import module_table
from dimos_streams.tool_stream.liveness.heartbeat import MAX_CALLS, MAX_SKILLS_JSON, Head, head_of
from dimos_streams.tool_stream.liveness.instances import Instance, Instances, listed
from dimos_streams.tool_stream.liveness.module_entry import DEPARTED_S, ModuleEntry
from dimos_streams.tool_stream.liveness.skill_fragments import PartialSkills, SkillFragment
from dimos_streams.tool_stream.protocol.channels import STATUS
from dimos_streams.tool_stream.receiving import received_calls, reorder_buffer
from dimos_streams.tool_stream.receiving.received_call import ReceivedCall, ResumePoint
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.sending.history import EventHistory
from dimos_streams.tool_stream.signature import parse_signature, signed
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event

MAX_EVENTS, MAX_BYTES = 5, 40


@pytest.mark.slow
@given(st.lists(st.integers(1, 30) | st.integers(-20, 0), max_size=30), st.data())
def test_a_history_is_the_newest_within_bounds_and_the_first(steps: list[int], data: st.DataObject) -> None:
    """A positive step is an event of so many bytes, another one is an acknowledgement so far back."""
    history = EventHistory(max_events=MAX_EVENTS, max_bytes=MAX_BYTES)
    events: list[bytes] = []
    first_kept = 1
    for step in steps:
        if step > 0:
            events.append(bytes([len(events) + 1]) * step)
            history.append(events[-1])
            while len(events) - first_kept + 1 > MAX_EVENTS or (
                sum(map(len, events[first_kept - 1 :])) > MAX_BYTES and first_kept < len(events)
            ):
                first_kept += 1
        else:
            history.forget(len(events) + step)
            first_kept = max(first_kept, len(events) + step + 1)
    assert (history.last_seq, history.first_kept) == (len(events), first_kept)
    assert history.newest == (events[-1] if first_kept <= len(events) else events[0] if events else b"")
    first = data.draw(st.integers(1, len(events) + 2))
    last = data.draw(st.integers(first, len(events) + 3))
    wanted = range(first, min(last, len(events)) + 1)
    kept = [events[seq - 1] for seq in wanted if seq >= first_kept]
    opening = [events[0]] if 1 in wanted and first_kept > 1 else []
    lost = [seq for seq in range(first, last + 1) if 1 < seq < first_kept]
    found, gone = history.range(first, last, 64)
    assert found == opening + kept
    assert gone == ((lost[0], lost[-1]) if lost else None)
    assert history.range(first, last, 2) == (opening + kept[:2], gone)


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


@pytest.mark.virtual_time
async def test_names_that_nobody_has_spoken_for_long_push_out_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_table, "MAX_NEW", 2)
    table = module_table.ModuleTable()

    def beat(name: str) -> bool:
        if name not in table.entries:
            if not table.make_room():
                return False
            table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
        entry = table.entries[name]
        assert entry.instances.heard(ModuleStatus(module=name, instance="1"), clock.monotonic())
        table.heard(name, entry)
        return True

    for _ in range(10):
        assert all(map(beat, ("a", "b")))
        await asyncio.sleep(0.25)
    assert all(map(beat, ("c", "d"))), "those of before have spoken for long by now"
    assert not beat("e")
    await asyncio.sleep(1.0)
    assert beat("d")
    await asyncio.sleep(1.0)
    assert beat("e")
    assert list(table.entries) == ["a", "b", "d", "e"], "the one that was silent for longest has gone"


def status(instance: str, started: int = 1, **more: object) -> ModuleStatus:
    return ModuleStatus(module="m", instance=instance, started_utime=started, pid=7, host="h", **more)  # type: ignore[arg-type]


@pytest.mark.virtual_time
async def test_the_module_silent_for_longest_is_forgotten_first_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_table, "MAX_NEW", 2)
    table = module_table.ModuleTable()

    def heard(*names: str) -> None:
        for name in names:
            if name not in table.entries:
                assert table.make_room()
                table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
            table.heard(name, table.entries[name])

    heard("a", "b", "a")
    assert list(table.entries) == ["b", "a"]
    for one, other in (("c", "d"), ("e", "f")):
        await asyncio.sleep(2.0)
        heard(one, other)
        assert list(table.entries) == [one, other]


@pytest.mark.virtual_time
async def test_time_in_which_nobody_could_be_heard_makes_no_gone_instance_live() -> None:
    await asyncio.sleep(1.0)
    entry = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
    assert entry.instances.heard(status("1"), clock.monotonic())
    entry.turn_to_active()
    entry.token("1", is_there=False)
    entry.excuse(10.0)
    lost_at = clock.monotonic() + 10.0
    assert (entry.departed(lost_at), entry.departed(lost_at + DEPARTED_S)) == (False, True)


def test_an_instance_that_another_one_has_followed_is_known_by_its_process() -> None:
    instances = Instances()
    for at, (instance, pid) in enumerate((("1", 11), ("2", 12))):
        assert instances.heard(ModuleStatus(module="m", instance=instance, pid=pid), float(at))
    found = [instances.of_process(pid) for pid in (11, 12, 13)]
    assert [instance and instance.id for instance in found] == ["1", "2", None]


def test_an_established_instance_is_followed_by_another_one_when_it_is_silent_for_long() -> None:
    instances = Instances()
    for quarter in (*range(9), *range(16, 60)):
        instances.heard(status("1" if quarter < 9 else "2"), quarter / 4)
    assert instances.established is not None
    assert instances.established.id == "2"


def test_parts_of_another_description_are_forgotten() -> None:
    def part(number: int, parts: int) -> SkillFragment:
        info = SkillInfo(name=f"s{number}of{parts}", description="", parameters={})
        return SkillFragment(part=number, parts=parts, skills=(info,))

    partial = PartialSkills()
    for version, number, parts, bytes in (("1", 0, 3, 10), ("1", 1, 3, 20), ("2", 0, 3, 10), ("2", 0, 2, 10)):
        assert partial.add(version, part(number, parts), 10) is None
        assert partial.bytes == bytes
    skills = partial.add("2", part(1, 2), 10)
    assert skills is not None
    assert [info.name for info in skills] == ["s0of2", "s1of2"]


def test_one_instance_speaks_until_it_falls_silent_and_another_is_heard() -> None:
    seen = Instances()
    assert (seen.active, seen.is_active("a"), seen.alive(0.0), seen.superseded("a", 0.0)) == (
        None,
        False,
        False,
        False,
    )
    assert seen.heard(status("a"), 0.0)
    assert seen.superseded("z", 0.1), "one that is not known, beside one that is"
    assert not seen.heard(status("b"), 0.75)
    assert seen.is_active("a")
    assert not seen.superseded("a", 0.75)
    assert seen.superseded("a", 0.76), "silent for longer than another one"
    assert seen.heard(status("b"), 0.76)
    assert (seen.is_active("b"), seen.is_active("a")) == (True, False)
    assert seen.active == Instance(1, "b", 7, "h")
    assert seen.heard(status("b"), 5.0)
    assert not seen.superseded("b", 9.0), "nobody has followed"
    assert not seen.heard(status("a"), 5.1), "it comes back, but does not speak any more"
    assert seen.contradicting(5.5) == [], "that was active once"


def test_an_established_instance_that_is_heard_again_speaks_again() -> None:
    seen = Instances()
    for now in (0.0, 1.0, 2.0):
        assert seen.heard(status("real"), now)
    assert seen.heard(status("forged"), 2.8)
    for number in range(20):
        assert not seen.heard(status(f"forged{number}"), 2.9)
    assert (seen.is_known("real"), seen.is_known("forged"), seen.is_known("forged19")) == (True, True, False)
    assert seen.heard(status("real"), 3.0)
    assert (seen.is_active("real"), seen.is_known("forged"), seen.superseded("real", 3.1)) == (True, False, False)
    for now in (4.0, 9.0, 12.9):
        assert seen.heard(status("next"), now)
    assert seen.is_known("real"), "silent for 9.9 s"
    assert seen.heard(status("next"), 13.1)
    assert not seen.is_known("real")
    assert not seen.heard(status("real"), 13.2)


def test_time_in_which_nobody_could_be_heard_establishes_no_instance() -> None:
    seen = Instances()
    seen.heard(status("a"), 0.0)
    seen.excuse(10.0)
    assert seen.heard(status("a"), 10.5)
    assert seen.established is None
    assert seen.heard(status("a"), 12.0)
    assert seen.established == Instance(1, "a", 7, "h")


def test_who_contradicts_is_reported_once_and_not_for_a_heartbeat_that_was_overtaken() -> None:
    seen = Instances()
    seen.heard(status("a"), 0.0)
    seen.heard(status("b"), 0.1)
    assert seen.contradicting(0.3) == []
    assert [one.id for one in seen.contradicting(0.31)] == ["b"]
    assert seen.contradicting(0.4) == []


def test_instances_that_are_heard_for_a_while_run_side_by_side() -> None:
    seen = Instances()
    seen.heard(status("young", started=2), 0.0)
    for now in (0.2, 0.5, 0.79):
        seen.heard(status("young", started=2), now)
        seen.heard(status("old", started=1), now)
    assert seen.side_by_side(0.79, 1.5) == []
    for now in (0.81, 1.0):
        seen.heard(status("young", started=2), now)
        seen.heard(status("old", started=1), now)
    seen.heard(status("straggler", started=0), 1.0)
    assert [one.id for one in seen.side_by_side(1.0, 1.5)] == ["old", "young"]
    assert [one.id for one in seen.side_by_side(2.5, 1.5)] == ["old", "young"]
    assert seen.side_by_side(2.51, 1.5) == []


def test_other_instances_are_bounded() -> None:
    seen = Instances()
    for number in range(10):
        seen.heard(status(f"i{number}"), 0.5)
        seen.heard(status("i1"), 0.5)
    assert [seen.superseded(f"i{number}", 1.2) for number in (1, 4, 9)] == [False, False, False]
    seen.heard(status("i0"), 1.5)
    seen.heard(status("i1"), 1.5)
    found = [one.id for one in seen.side_by_side(1.5, 1.5)]
    assert found == ["i0", "i1"]
    assert len(seen.contradicting(1.5)) == 7


def test_instances_in_words() -> None:
    one, other = Instance(0, "a", 7, ""), Instance(1_700_000_000_000_000, "b", 8, "host")
    assert str(one) == "pid 7 on an unknown host, instance a"
    assert str(Instance(0, "1a2b-7-5e7f", 7, "")).endswith("instance 1a2b-7"), "its secret is nobody's"
    since = datetime.datetime.fromtimestamp(1_700_000_000).astimezone()
    assert str(other) == f"pid 8 on host since {since:%Y-%m-%d %H:%M:%S}, instance b"
    assert listed([one, one]) == f"{one}; {one}"
    assert "since" not in str(Instance(2**62, "a", 7, "h"))
    long = Instance.of(ModuleStatus(instance="i" * 100, host="h" * 100))
    assert (long.id, long.host) == ("i" * 64, "h" * 64)


@pytest.mark.slow
@given(st.text(max_size=50), st.text(max_size=50), st.integers(0, 20), st.text(max_size=100), st.text(max_size=100))
def test_the_head_of_a_heartbeat_is_what_all_of_it_says(
    module: str, instance: str, calls: int, version: str, skills: str
) -> None:
    whole = ModuleStatus(
        utime=5, module=module, instance=instance, pid=3, host="h", started_utime=9, health="ok",
        skills_version=version, skills_json=skills, call_ids=["c"] * calls, last_seqs=[1] * calls,
    )  # fmt: skip
    data = encode(whole)
    head = head_of(data, STATUS)
    assert (head.module, head.instance, head.calls) == (module, instance, calls)
    assert 0 <= head.skills_bytes - len(skills.encode()) <= 10
    assert head.cost == 10 + calls + head.skills_bytes / 64 + (300 if skills else 0)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"module": "m" * 251}, ""),
        ({"module": "m" * 252}, "a name of 257 bytes"),
        ({"instance": "m" * 252}, "a name of 257 bytes"),
        ({"host": "m" * 252}, "a name of 257 bytes"),
        ({"call_ids": ["c"] * MAX_CALLS, "last_seqs": [1] * MAX_CALLS}, ""),
        ({"call_ids": ["c"] * (MAX_CALLS + 1), "last_seqs": [1] * (MAX_CALLS + 1)}, "it names 1281 calls"),
        ({"skills_json": "x" * (MAX_SKILLS_JSON - 5)}, ""),
        ({"skills_json": "x" * (MAX_SKILLS_JSON - 4)}, "has 64001 bytes of skills"),
    ],
)
def test_no_module_sends_a_larger_heartbeat(more: dict[str, object], why: str) -> None:
    data = encode(ModuleStatus(**{"module": "m", "instance": "1", **more}))  # type: ignore[arg-type]
    if not why:
        assert isinstance(head_of(data, STATUS), Head)
        return
    with pytest.raises(MessageError, match=why):
        head_of(data, STATUS)


def test_a_heartbeat_that_is_cut_off_is_none() -> None:
    data = encode(ModuleStatus(module="m", instance="1", skills_json="x" * 100))
    whole = head_of(data, STATUS)
    least = data.index(b"x" * 100) + 100 + len(b"\0") + 4
    assert head_of(data[:least], STATUS) == whole, "its calls and its state may be missing"
    for size in range(least):
        with pytest.raises(MessageError, match="beginning is damaged" if size >= 8 else "fingerprint"):
            head_of(data[:size], STATUS)
    with pytest.raises(MessageError, match="fingerprint"):
        head_of(b"\0" + data[1:], STATUS)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["skills", "part", "state", "silence"]),
            st.integers(0, 3),
            st.integers(1, 400),
            st.sampled_from("123"),
        ),
        max_size=30,
    )
)
def test_a_directory_knows_how_much_its_modules_have_said(
    steps: list[tuple[str, str, int, int, str]],
) -> None:
    async def scenario() -> None:
        table = module_table.ModuleTable()
        for name, what, number, size, instance in steps:
            if what == "silence":
                await asyncio.sleep(number)
                continue
            if name not in table.entries:
                if not table.make_room():
                    continue
                table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
            entry = table.entries[name]
            if entry.instances.heard(ModuleStatus(module=name, instance=instance), clock.monotonic()):
                table.heard(name, entry)
                table.turn_to_active(name, entry)
            report = entry.current
            version, text = f"v{number // 2}", "x" * size
            if what == "skills":
                table.take_skills(report, ModuleStatus(module=name, skills_version=version, skills_json=text), ())
            elif what == "part":
                part = SkillFragment(part=number % 2, parts=2, skills=())
                table.take_fragment(report, ModuleStatus(module=name, skills_version=version, skills_json=text), part)
            else:
                table.take_state(report, ModuleStatus(module=name, state_json=json.dumps({"x": text})))
            assert table.bytes == sum(each.bytes for each in table.entries.values())
            assert table.new_bytes == sum(table.entries[each].bytes for each in table._new)
            assert table.bytes <= 1000
            assert len(table.entries) <= 2
            assert name in table.entries, "who speaks is not forgotten"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_table, "MAX_BYTES", 1000)
        patch.setattr(module_table, "MAX_MODULES", 2)
        clock.run_virtual(scenario())


def test_signatures() -> None:
    for receiver, instance in (("bridge", "i-1"), ("bridge", "")):
        assert parse_signature(signed(receiver, instance)) == (receiver, instance)
    assert signed("bridge", "") == "bridge"
