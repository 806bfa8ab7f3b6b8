"""What a run ended in mid-call, or stopped and started again, is tested up to there, and from there on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.blueprint.classes import instantiate
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.bus import Bus
from dimos_streams.clock import run_virtual
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, ToolStreamRequest
from dimos_streams.module import Services
from dimos_streams.recording.cut import LogPart, cut
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import context_for, plan_run
from dimos_streams.tool_stream.event import MAX_SEQ
from dimos_streams.tool_stream.liveness.heartbeat import ENDED
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, REQUESTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.recording.logs import raw, read_log, write_log
from tests.recording.recorded import NO_PICTURES, robot_with_bridge

_OPTIONS = RunOptions(bus_url="memq://", seed=7)


def record(path: Path, blueprint: Blueprint, *reasons: str) -> Path:
    """Record a robot that is to turn far, and whose ``drive`` is stopped in mid-turn, for each reason once."""
    metadata = describe(blueprint=blueprint.model_dump(mode="json"), seed=7, mode="virtual", selection=NO_PICTURES)
    options = RecordingOptions(path=path, selection=NO_PICTURES, metadata=metadata)
    others = blueprint.model_copy(update={"modules": {n: s for n, s in blueprint.modules.items() if n != "drive"}})

    async def mission() -> None:
        run = InProcessRun(others, _OPTIONS, attach=[lambda bus: recording(bus, options)])
        await run.start()
        for number, reason in enumerate(reasons):
            await turn_for_a_while(run.bus, number, reason)
        await run.stop()

    async def turn_for_a_while(bus: Bus, number: int, reason: str) -> None:
        host = ModuleHost(bus)
        plan = next(plan for plan in plan_run(blueprint) if plan.spec.name == "drive")
        context = context_for(_OPTIONS, Services(), plan)
        await host.start(instantiate(plan.spec, context), plan.topics)
        await asyncio.sleep(1.0)
        arguments = '{"angle_deg": 1000}'
        bus.publish(
            CALLS, encode(SkillCall(call_id=f"{number:016x}", module="drive", skill="turn", arguments_json=arguments))
        )
        await asyncio.sleep(1.23)
        await host.stop(reason)
        await asyncio.sleep(1.0)

    run_virtual(mission())
    return path


@pytest.mark.feature("F3")
@pytest.mark.parametrize("reasons", [("the module is stopping",), ("an operator restarts it", "the run is stopped")])
def test_a_module_stops_and_starts_where_it_did(tmp_path: Path, reasons: tuple[str, ...]) -> None:
    path = record(tmp_path / "a.lcmlog", robot_with_bridge(), *reasons)
    report = replay(path, ReplayOptions(modules=("drive",)))
    assert report.passed, "\n".join(report.lines())
    assert report.calls == len(reasons)
    assert sum(stream.matched for stream in report.streams) > 10 * len(reasons)


@pytest.mark.feature("F3")
def test_a_module_that_is_down_where_a_part_begins_is_down_in_its_replay(tmp_path: Path) -> None:
    events = raw(read_log(record(tmp_path / "a.lcmlog", robot_with_bridge(), "an operator restarts it", "it stops")))
    ended = next(index for index, event in enumerate(events) if is_of_drive(event) and health(event) == ENDED)
    utime = events[ended][0]
    asked = SkillCall(call_id="f" * 16, module="drive", skill="turn", arguments_json='{"angle_deg": 1000}')
    late = next(index for index, event in enumerate(events) if event[0] > utime + 500_000)
    events.insert(late, (utime + 500_000, CALLS, encode(asked)))  # and nobody is there to take it
    with LogReader(write_log(tmp_path / "b.lcmlog", events)) as log:
        cut([log], tmp_path / "part.lcmlog", LogPart(from_s=(utime - events[0][0]) / 1e6 + 0.2))
    report = replay(tmp_path / "part.lcmlog", ReplayOptions(modules=("drive",)))
    assert report.passed, "\n".join(report.lines())
    assert sum(stream.matched for stream in report.streams) > 10


@pytest.mark.feature("F3")
@pytest.mark.parametrize("instance", ["evil", ""])
def test_who_does_not_have_the_modules_name_stops_it_in_no_replay(tmp_path: Path, instance: str) -> None:
    events = raw(read_log(record(tmp_path / "a.lcmlog", robot_with_bridge(), "the module is stopping")))
    stops = next(index for index, event in enumerate(events) if is_of_drive(event) and health(event) == "stopping")
    before = [index for index in range(stops) if is_of_drive(events[index])][-2]
    utime = events[before][0]
    forged = encode(ModuleStatus(utime=utime, module="drive", instance=instance, health="stopping", started_utime=1))
    events.insert(before + 1, (utime, STATUS, forged))
    report = replay(write_log(tmp_path / "b.lcmlog", events), ReplayOptions(modules=("drive",)))
    assert report.passed, "\n".join(report.lines())


@pytest.mark.feature("F3")
def test_of_a_process_that_was_killed_nothing_is_expected_after_it(tmp_path: Path) -> None:
    """Its module goes on: the log, which says nothing of its end, must end with it."""
    events = raw(read_log(record(tmp_path / "a.lcmlog", robot_with_bridge(), "the module is stopping")))
    stops = next(index for index, event in enumerate(events) if is_of_drive(event) and health(event) == "stopping")
    report = replay(write_log(tmp_path / "b.lcmlog", events[:stops]), ReplayOptions(modules=("drive",)))
    assert report.passed, "\n".join(report.lines())


def is_of_drive(event: tuple[int, str, bytes]) -> bool:
    return event[1] == STATUS and decode(ModuleStatus, event[2], STATUS).module == "drive"


def health(event: tuple[int, str, bytes]) -> str:
    return str(decode(ModuleStatus, event[2], STATUS).health)


@pytest.mark.feature("F3")
def test_a_log_that_is_written_anew_has_each_output_behind_its_cause(tmp_path: Path) -> None:
    path = record(tmp_path / "a.lcmlog", robot_with_bridge(), "the module is stopping")
    before = talk_of_end(path)
    report = replay(path, ReplayOptions(modules=("drive",), update=True))
    assert report.updated
    assert talk_of_end(path) == before
    assert before[0] == "stopping"
    assert before.index("close") < before.index("ack")


def talk_of_end(path: Path) -> list[str]:
    """What is said from the moment on at which ``drive`` begins to stop, until the bridge has the end of its call."""
    said: list[str] = []
    for event in raw(read_log(path)):
        if is_of_drive(event) and health(event) == "stopping":
            said.append("stopping")
        elif not said:
            continue
        elif event[1].startswith("/skill_vel"):
            said.append("velocity")
        elif event[1] == EVENTS:
            said.append(unpack_event(event[2]).type)
        elif event[1] == REQUESTS and decode(ToolStreamRequest, event[2], REQUESTS).to_seq > MAX_SEQ:
            said.append("ack")
            return said
    raise AssertionError("the end was never acknowledged")
