"""The moments of a recording: what is shown of them is what the run knew, however one gets there."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot
from dimos_streams.operator.reporting import event_data, snapshot_data
from dimos_streams.recording.cut import LogPart, cut
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.tape import Place, Tape
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.viewer import index as index_module
from dimos_streams.viewer import playback as playback_module
from dimos_streams.viewer.bus import ReplayBus
from dimos_streams.viewer.marks import MAX_SHOWN, Marks
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.socket import transport_of
from dimos_streams.viewer.transport_commands import Play, Seek, Speed, StepPlayback
from tests.bridge import scene
from tests.helpers import until
from tests.recording.logs import START, Raw, raw, read_log, write_log
from tests.viewer.mission import Mission
from tests.viewer.open_recordings import indexed, state_at

NOT_TOLD = {"agents", "watchers"}
"""Agents are compared by themselves: what they report to consoles is not on the bus while nobody watches."""


async def _bus() -> ReplayBus:
    bus = ReplayBus()
    await bus.open()
    return bus


@pytest.mark.slow
@pytest.mark.feature("I3")
def test_the_marks_of_a_long_recording_are_of_all_of_it() -> None:
    marks, count = Marks(), 100_000
    for number in range(count):
        marks.add(number, scene.event(number + 1, "update"))
    shown = [mark["utime"] for mark in marks.shown()]
    assert MAX_SHOWN / 2 <= len(shown) <= MAX_SHOWN
    assert {later - sooner for sooner, later in pairwise(shown)} == {shown[1]}
    assert shown[-1] + shown[1] >= count, "to its end"
    assert (marks.left_out, marks.after(5), marks.before(count)) == (count - len(shown), 6, count - 1)


@pytest.mark.slow
@pytest.mark.feature("I3")
@pytest.mark.virtual_time
async def test_what_is_shown_is_what_the_bridge_knew(mission: Mission) -> None:
    with indexed(mission.log) as index:
        playback = Playback(index, await _bus())
        for known in mission.known:
            shown = state_at(playback, known.utime)
            for field in type(shown).model_fields.keys() - NOT_TOLD:
                assert getattr(shown, field) == getattr(known.state, field), (field, known.utime - index.begin)
    assert any(known.state.stopped.stops for known in mission.known)
    assert any(known.state.scene for known in mission.known)
    assert any(known.state.leases for known in mission.known)


def _shown_of(agent: AgentSnapshot) -> object:
    """What calls report of an agent. Notes of no mission are left out, and so is progress."""
    entries = [entry for entry in agent.conversation if entry.role not in ("progress", "note")]
    said = [(entry.role, entry.text.split("\n")[0]) for entry in entries]
    return agent.mode, agent.state == "idle", [mission.text for mission in agent.missions], agent.calls, said


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_agents_are_told_by_their_calls(mission: Mission) -> None:
    with indexed(mission.log) as index:
        playback = Playback(index, await _bus())
        for known in mission.known:
            shown = state_at(playback, known.utime).agents["agent"]
            assert _shown_of(shown) == _shown_of(known.agent)
    assert any(known.agent.mode == "paused" for known in mission.known)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_any_way_to_a_moment_shows_the_same(mission: Mission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "KEY_EVERY_US", 1_000_000)
    rng = random.Random(5)
    with indexed(mission.log) as index:
        moments = sorted(rng.randint(index.begin, index.end) for _ in range(30))
        playing, jumping = Playback(index, await _bus()), Playback(index, await _bus())
        played = {utime: state_at(playing, utime) for utime in moments}
        rng.shuffle(moments)
        for utime in moments:
            assert state_at(jumping, utime) == played[utime]
            assert jumping.world.offset == index.heard_until(utime)


@pytest.mark.slow
@pytest.mark.feature("I3")
@pytest.mark.virtual_time
@pytest.mark.parametrize(("stalls_s", "shown_after_s"), [(0.0, 0.1), (2.0, 4.0)], ids=["at once", "to a slow page"])
async def test_what_is_shown_last_is_the_end(mission: Mission, stalls_s: float, shown_after_s: float) -> None:
    with indexed(mission.log) as index:
        playback = Playback(index, await _bus())
        running = asyncio.create_task(playback.run())
        with closing(playback.watch()) as watcher:

            async def read() -> None:
                await watcher.next()
                await asyncio.sleep(stalls_s)
                while True:
                    await watcher.next()

            reading = asyncio.create_task(read())
            playback.carry_out(Speed(command="speed", speed=16.0))
            playback.carry_out(Play(command="play"))
            await until(lambda: playback.utime() == index.end)
            await asyncio.sleep(shown_after_s)
            last = watcher._shown
            assert last is not None
            assert last.snapshot == Collector(playback.world).snapshot(1)
            running.cancel()
            reading.cancel()
            await asyncio.wait([running, reading])


@pytest.mark.virtual_time
async def test_the_end_is_told_to_all_though_one_asks_at_that_very_moment(mission: Mission) -> None:
    with indexed(mission.log) as index:
        playback = Playback(index, await _bus())
        running = asyncio.create_task(playback.run())
        playback.carry_out(Seek(command="seek", utime=index.end - 500_000))
        playback.carry_out(Play(command="play"))
        told = playback.changed
        await until(lambda: not transport_of(playback)["playing"])  # as a page asks that is opened then
        assert not told.is_set()
        await asyncio.wait_for(told.wait(), 1)
        assert playback.utime() == index.end
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.virtual_time
async def test_steps_go_from_event_to_event_and_back(mission: Mission) -> None:
    with indexed(mission.log) as index:
        playback = Playback(index, await _bus())
        forwards = []
        while playback.utime() < index.end:
            playback.carry_out(StepPlayback(command="step"))
            forwards.append(playback.utime())
        backwards = []
        while playback.utime() > index.begin:
            playback.carry_out(StepPlayback(command="step", back=True))
            backwards.append(playback.utime())
    assert forwards == sorted(set(forwards))
    assert len(forwards) >= 9
    assert backwards[::-1][1:] == forwards[:-1]


def test_what_is_kept_of_a_long_recording_is_bounded(mission: Mission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "KEY_EVERY_US", 10_000)
    monkeypatch.setattr(index_module, "MAX_KEYS", 16)
    with indexed(mission.log) as index:
        assert 4 <= len(index._keys) <= 16
        keys = [key.utime for key in index._keys]
        assert keys == sorted(keys)
        assert keys[0] == index.begin


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_however_much_was_recorded_at_one_instant_little_of_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"module": "m", "skill": "s", "caller": "me", "text": "x" * 2000}
    dense = [ToolEvent(utime=START, call_id=f"c{n}", seq=1, type="open", data={}, **names) for n in range(4000)]
    log = write_log(tmp_path / "dense.lcmlog", [(START, EVENTS, pack_event(event)) for event in dense])
    read = 0

    def counted(tape: Tape, place: Place = Place()) -> Any:  # noqa: B008 - it is never changed
        nonlocal read
        for read_now, event in enumerate(events(tape, place), 1):
            read = max(read, read_now)
            yield event

    events = Tape.events
    monkeypatch.setattr(index_module, "KEY_BYTES", 500_000)
    monkeypatch.setattr(playback_module, "KEY_BYTES", 500_000)
    with indexed(log) as index:
        monkeypatch.setattr(Tape, "events", counted)
        playback = Playback(index, await _bus())
        for utime in (START, START - 1, START + 1, START):
            playback.show(utime)
            assert (playback.world.offset == 4000) == (utime >= START)
        assert 0 < read < 1000


@pytest.mark.slow
def test_parts_of_a_recording_are_one(mission: Mission, tmp_path: Path) -> None:
    parts = [tmp_path / "a.lcmlog", tmp_path / "b.lcmlog"]
    with LogReader(mission.log) as log:
        cut([log], parts[0], LogPart(to_s=3.0))
        cut([log], parts[1], LogPart(from_s=3.000001))
    with indexed(mission.log) as whole, indexed(*parts) as both:
        assert (both.begin, both.end) == (whole.begin, whole.end)
        assert both.journal.last_offset == whole.journal.last_offset
        key = both.key_before(both.end)
        assert key.utime > both.begin + 3_000_000
        assert next(event for event, _ in both.tape.events(key.place)).utime == key.utime


def _report(at_us: int, seq: int, type: EventType, **data: Any) -> Raw:
    names: dict[str, Any] = {"call_id": "r1", "module": "agent", "skill": "report", "caller": "monitor", "text": ""}
    event = ToolEvent(utime=START + at_us, seq=seq, type=type, data=data, **names)
    return START + at_us, EVENTS, pack_event(event)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_agents_reported_to_consoles_is_shown_where_the_log_has_it(
    mission: Mission, tmp_path: Path
) -> None:
    snapshot = mission.known[0].agent.model_copy(update={"model": "reported"})
    event = AgentEvent(number=1, utime=START, agent="agent", kind="content", data={"text": "Well"})
    reports = [
        _report(600_000, 1, "open"),
        _report(700_000, 2, "progress", **snapshot_data(snapshot)),
        _report(800_000, 3, "update", **event_data(event)),
        _report(900_000, 4, "close", outcome="cancelled"),
    ]
    log = write_log(tmp_path / "a.lcmlog", sorted([*raw(read_log(mission.log)), *reports], key=lambda each: each[0]))
    with indexed(log) as index:
        playback = Playback(index, await _bus())
        models = [state_at(playback, START + at_us).agents["agent"].model for at_us in (650_000, 750_000, 950_000)]
        assert models == ["not recorded", "reported", "not recorded"]
        assert [call.skill for call in state_at(playback, START + 750_000).calls] == ["say", "follow_person"]
        with closing(playback.watch()) as watcher:
            playback._look()
            assert await watcher.next()
            playback.show(START + 850_000)
            assert b'"type":"event"' in (await watcher.next() or b"")
