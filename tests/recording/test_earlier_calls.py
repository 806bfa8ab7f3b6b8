"""A part that was cut out of a recording in the middle of a call is tested without that call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.clock import run_virtual
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall
from dimos_streams.recording.cut import LogPart, cut
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.recording.selection import Selection
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.regression.report import Report
from dimos_streams.regression.tolerances import LIVE
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.recording.logs import raw, read_log, write_log
from tests.recording.recorded import NO_PICTURES, robot_with_bridge

VEL = "/skill_vel#geometry_msgs.Twist"


@pytest.fixture(scope="module")
def two_turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two turns, from 1 s on and from 5 s on. Not to be written to."""
    path = tmp_path_factory.mktemp("turns") / "turns.lcmlog"
    blueprint = robot_with_bridge()
    metadata = describe(blueprint=blueprint.model_dump(mode="json"), seed=7, mode="virtual", selection=NO_PICTURES)
    options = RecordingOptions(path=path, selection=NO_PICTURES, metadata=metadata)

    async def mission() -> None:
        run = InProcessRun(
            blueprint, RunOptions(bus_url="memq://", seed=7), attach=[lambda bus: recording(bus, options)]
        )
        await run.start()
        assert run.gateway is not None
        for _ in range(2):
            await asyncio.sleep(1.0)
            await run.gateway.call("turn", {"angle_deg": 90}, caller="test")
            await asyncio.sleep(3.0)
        await run.stop()

    run_virtual(mission())
    return path


def part(of: Path, target: Path, from_s: float, to_s: float | None = None) -> Path:
    with LogReader(of) as log:
        cut([log], target, LogPart(from_s=from_s, to_s=to_s))
    return target


def replayed(path: Path, *modules: str, **options: Any) -> Report:
    return replay(path, ReplayOptions(modules=modules, **options))


def text_of(report: Report) -> str:
    return "\n".join(report.lines())


def test_what_a_call_from_before_the_log_said_and_sent_is_not_compared(two_turns: Path, tmp_path: Path) -> None:
    path = part(two_turns, tmp_path / "a.lcmlog", 1.5)
    report = replayed(path, "drive")
    assert report.passed, text_of(report)
    (remark,) = report.remarks
    told = "1 call began before the log: what it said is not compared, nor what drive sent before it ends: turn ["
    assert remark.startswith(told)
    assert report.calls == 1
    (sent,) = (stream for stream in report.streams if stream.stream == VEL)
    assert (sent.by_earlier > 5, sent.by_others, sent.matched > 5) == (True, 0, True), text_of(report)
    assert f"{sent.by_earlier} during earlier calls" in text_of(report)
    changed = replayed(path, "drive", settings={"drive.max_turn": 0.3})
    assert changed.first is not None
    assert (changed.first.utime - changed.start_utime) / 1e6 > 3.0, "in the second turn"


def test_a_log_with_nothing_else_tests_nothing(two_turns: Path, tmp_path: Path) -> None:
    report = replayed(part(two_turns, tmp_path / "a.lcmlog", 1.5, 2.0), "drive")
    why = "the log has nothing that drive sent or said but for calls that began before it: begin earlier"
    assert report.problem == why


def test_a_call_that_was_said_again_is_over_when_heartbeats_do_not_name_it(two_turns: Path, tmp_path: Path) -> None:
    said = next(event for event in raw(read_log(two_turns)) if event[1] == EVENTS and unpack_event(event[2]).seq > 1)
    events = raw(read_log(part(two_turns, tmp_path / "a.lcmlog", 4.0)))
    first = next(at for at, event in enumerate(events) if event[1] == EVENTS)
    events.insert(first, (events[first][0], *said[1:]))  # behind its close
    path = write_log(tmp_path / "b.lcmlog", events)
    report = replayed(path, "drive")
    assert (report.passed, len(report.remarks)) == (True, 1), text_of(report)
    assert not replayed(path, "drive", settings={"drive.max_turn": 0.3}).passed


def test_a_call_of_which_a_log_has_no_event_is_known_by_heartbeats(two_turns: Path, tmp_path: Path) -> None:
    path = without_first_call(part(two_turns, tmp_path / "a.lcmlog", 1.5), tmp_path / "b.lcmlog")
    report = replayed(path, "drive")
    assert (report.passed, report.calls) == (True, 1), text_of(report)
    (remark,) = report.remarks
    assert re.search(r"nor what drive sent before it ends: a call of drive \[[0-9a-f]+\]$", remark)
    changed = replayed(path, "drive", settings={"drive.max_turn": 0.3})
    assert changed.first is not None
    assert (changed.first.utime - changed.start_utime) / 1e6 > 3.0, "in the second turn"


def test_a_log_of_nothing_but_such_a_call_tests_nothing(two_turns: Path, tmp_path: Path) -> None:
    path = without_first_call(part(two_turns, tmp_path / "a.lcmlog", 1.5, 2.2), tmp_path / "b.lcmlog")
    assert "but for calls that began before it" in replayed(path, "drive").problem


def test_of_a_heartbeat_in_several_parts_each_counts(two_turns: Path, tmp_path: Path) -> None:
    def in_parts(status: ModuleStatus) -> list[ModuleStatus]:
        return [beat(status, "first"), status, beat(status, "last")] if status.call_ids else [status]

    silent = without_first_call(part(two_turns, tmp_path / "a.lcmlog", 1.5, 4.5), tmp_path / "b.lcmlog")
    report = replayed(with_heartbeats(silent, tmp_path / "c.lcmlog", in_parts), "drive")
    assert report.remarks[0].startswith("3 calls began before the log")
    assert "but for calls that began before it" in report.problem, text_of(report)


def test_what_introduces_skills_does_not_say_what_runs_where_a_part_begins(two_turns: Path, tmp_path: Path) -> None:
    def introduced(status: ModuleStatus) -> list[ModuleStatus]:
        return [beat(status, "older") if status.skills_json else status]

    path = part(two_turns, tmp_path / "a.lcmlog", 4.0)
    report = replayed(with_heartbeats(path, tmp_path / "b.lcmlog", introduced), "drive")
    assert (report.passed, report.remarks) == (True, ()), text_of(report)


def without_first_call(path: Path, target: Path) -> Path:
    """Copy a log without what the first call in it said."""
    events = raw(read_log(path))
    first = next(unpack_event(data).call_id for _, channel, data in events if channel == EVENTS)
    return write_log(target, [e for e in events if e[1] != EVENTS or unpack_event(e[2]).call_id != first])


def with_heartbeats(path: Path, target: Path, change: Callable[[ModuleStatus], list[ModuleStatus]]) -> Path:
    """Copy a log with other heartbeats of ``drive`` in place of each."""
    events = []
    for utime, channel, data in raw(read_log(path)):
        status = decode(ModuleStatus, data, STATUS) if channel == STATUS else None
        beats = change(status) if status is not None and status.module == "drive" else []
        events += [(utime, channel, encode(each)) for each in beats] or [(utime, channel, data)]
    return write_log(target, events)


def beat(like: ModuleStatus, call_id: str) -> ModuleStatus:
    """A heartbeat that names another call than one like it."""
    other = decode(ModuleStatus, encode(like), STATUS)
    other.call_ids, other.last_seqs = [call_id], [1]
    return other


def test_update_keeps_what_such_a_call_said_and_sent(two_turns: Path, tmp_path: Path) -> None:
    path = part(two_turns, tmp_path / "a.lcmlog", 1.5)
    before = raw(read_log(path))
    assert replayed(path, "drive", update=True).updated
    assert sorted(raw(read_log(path))) == sorted(before)


@pytest.mark.parametrize(("to_s", "updated"), [(None, False), (5.5, True)])
def test_a_call_that_had_ended_in_a_log_is_not_written_into_it_as_cut_off_by_its_end(
    two_turns: Path, tmp_path: Path, to_s: float | None, updated: bool
) -> None:
    """From then on the log would have passed, however the call ends. One that is cut off in it anyway may be."""
    path = part(two_turns, tmp_path / "a.lcmlog", 4.0, to_s)
    before = path.read_bytes()
    endless = {"drive.tolerance_deg": 0.01, "drive.blocked_after_s": 60, "drive.max_turn": 0.5}
    report = replayed(path, "drive", update=True, settings=endless)
    assert report.updated == updated, text_of(report)
    assert (path.read_bytes() == before) is not updated
    assert ("it stays as it is: turn [" in report.problem) is not updated


def test_a_call_that_an_update_wrote_as_cut_off_may_be_so_in_the_next_one(two_turns: Path, tmp_path: Path) -> None:
    path = part(two_turns, tmp_path / "a.lcmlog", 4.0, 5.5)
    endless = {"drive.tolerance_deg": 0.01, "drive.blocked_after_s": 60}
    for max_turn in (0.5, 0.4):
        report = replayed(path, "drive", update=True, settings={**endless, "drive.max_turn": max_turn})
        assert report.updated, text_of(report)


def test_a_call_that_was_carried_out_in_a_log_is_not_written_into_it_as_rejected(
    two_turns: Path, tmp_path: Path
) -> None:
    """From then on the log would have passed, whatever the skill does."""
    path = part(two_turns, tmp_path / "part.lcmlog", 4.0)
    renamed = [
        (utime, channel, with_argument(data, "angle") if channel == CALLS else data)
        for utime, channel, data in raw(read_log(path))
    ]
    before = write_log(tmp_path / "renamed.lcmlog", renamed).read_bytes()
    report = replayed(tmp_path / "renamed.lcmlog", "drive", update=True)
    assert (report.updated, report.passed) == (False, False), text_of(report)
    assert re.search(r"it stays as it is: turn \[.*\] \(.*angle.*\) was carried out in it", report.problem)
    assert (tmp_path / "renamed.lcmlog").read_bytes() == before
    assert replayed(write_log(tmp_path / "again.lcmlog", renamed), "drive").problem == ""


def with_argument(data: bytes, name: str) -> bytes:
    """The request for a turn by an argument of another name."""
    call = decode(SkillCall, data, CALLS)
    call.arguments_json = call.arguments_json.replace("angle_deg", name)
    return encode(call)


def test_a_call_whose_first_event_comes_late_is_made_all_the_same(two_turns: Path, tmp_path: Path) -> None:
    events = [event for event in raw(read_log(two_turns)) if event[1] != CALLS]
    at, opened = next((at, event) for at, event in enumerate(events) if event[1] == EVENTS)
    behind = next(at for at, event in enumerate(events) if event[1] == EVENTS and event[0] > opened[0])
    events.insert(behind, events.pop(at))
    report = replayed(write_log(tmp_path / "late.lcmlog", events), "drive", tolerances=LIVE)
    assert (report.calls, report.remarks) == (2, ())


def test_what_a_module_sends_before_the_part_is_neither_compared_nor_written(two_turns: Path, tmp_path: Path) -> None:
    path = part(two_turns, tmp_path / "part.lcmlog", 0.5, 0.9)
    before = sorted(raw(read_log(path)))
    report = replayed(path, "robot", update=True)
    assert report.passed, text_of(report)
    assert sorted(raw(read_log(path))) == before


def test_cutting_names_the_calls_that_it_cuts_in_two(two_turns: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.lcmlog"
    with LogReader(two_turns) as log:
        (turn,) = cut([log], target, LogPart(from_s=1.5)).begun_before
        assert turn.startswith("turn [")
        assert cut([log], target, LogPart(from_s=4.0)).begun_before == ()
        assert cut([log], target, LogPart(to_s=1.5)).begun_before == (), "what is cut off at its end is repeated"
        without = Selection(exclude=["/tool_streams"])
        assert cut([log], target, LogPart(from_s=1.5, selection=without)).begun_before == ()


def test_the_command_that_cuts_says_so(two_turns: Path, tmp_path: Path, command: Any) -> None:
    code, _, error = command("recording", "cut", two_turns, "-o", tmp_path / "a.lcmlog", "--from", "1.5")
    assert code == 0
    assert re.fullmatch(r"call turn \[[0-9a-f]+\] began before 1\.5 s; a replay can't repeat it\n", error)
