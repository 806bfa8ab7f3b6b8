"""With LCM's own tools: what lcm-logger wrote is replayed, what we wrote lcm-logplayer plays to live modules."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint import blueprint
from dimos_streams.blueprint.classes import instantiate
from dimos_streams.blueprint.load import resolve
from dimos_streams.bus import Bus, create_bus
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.running.record_plan import RecordPlan
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.module import RunContext
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.regression.tolerances import LIVE
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import plan_modules
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.helpers import until

SKILL_VEL = "/skill_vel#geometry_msgs.Twist"
DETECTIONS = "/detections#vision_msgs.Detection2DArray"
WANTED = ("robot", "detector", "follow")


@contextlib.contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


async def worst_lag(worst: list[float]) -> None:
    """Note, for as long as it runs, by how many seconds the machine is late for what is due."""
    while True:
        due = clock.monotonic() + 0.02
        await asyncio.sleep(0.02)
        worst[0] = max(worst[0], clock.monotonic() - due)


async def live_mission(bus_url: str, run_dir: Path, ours: Path) -> float:
    """A robot of real processes follows somebody for three seconds, recorded into ``ours``. Returns by how many
    seconds the machine was late meanwhile: what a starved robot does depends on more than its inputs."""
    stock = resolve("robot-only").configured({"robot.camera_width": 160, "robot.camera_height": 120})
    robot = blueprint("live", *(stock.modules[name] for name in WANTED))
    metadata = describe(blueprint=robot.model_dump(mode="json"), mode="live")
    recorded = RecordPlan(path=ours).add_to(robot, metadata)
    supervisor = Supervisor(recorded, RunOptions(bus_url=bus_url, run_dir=run_dir))
    bus = create_bus(bus_url)
    await bus.open()
    events: list[ToolEvent] = []
    bus.subscribe(EVENTS, lambda channel, data: events.append(unpack_event(data)))
    sees = asyncio.Event()
    bus.subscribe(DETECTIONS, lambda channel, data: sees.set())
    await supervisor.start()
    worst = [0.0]
    lag = asyncio.create_task(worst_lag(worst))
    try:
        await sees.wait()
        call(bus, "a", "follow_person", '{"description": "person in a red shirt"}')
        await until(lambda: any(event.data.get("event") == "found" for event in events))
        found = clock.monotonic()
        await until(lambda: clock.monotonic() > found + 3)
        call(bus, "b", "stop_following", "{}")
        await until(lambda: any(event.call_id == "b" and event.type == "close" for event in events))
    finally:
        lag.cancel()
        await supervisor.stop()
        await bus.close()
    return worst[0]


def apart(ours: Path, theirs: Path) -> float:
    """Return by how many seconds two logs of one bus disagree at most about when something came. Where they do, one
    of those who wrote them was late, and what a robot did depends on more than what is in the log."""
    came = collections.defaultdict(list)
    with LogReader(ours) as log:
        for event in log.events():
            came[event.channel, event.data].append(event.utime)
    with LogReader(theirs) as log:
        found = [(event.utime, came.get((event.channel, event.data), [])) for event in log.events()]
    return max(min(abs(utime - each) for each in times) for utime, times in found if times) / 1e6


def longest_blindness(path: Path) -> float:
    """Return the longest time, in seconds, between two detections in a log, or between a call and the next of them.
    On a starved machine it is as long as it takes the skill to call its camera frozen, and what it does then depends
    on milliseconds."""
    with LogReader(path) as log:
        came = [event.utime for event in log.events() if event.channel in (DETECTIONS, CALLS)]
    return max(later - before for before, later in pairwise(came)) / 1e6


def call(bus: Bus, call_id: str, skill: str, arguments: str) -> None:
    message = SkillCall(
        utime=clock.utime(), call_id=call_id, module="follow", skill=skill, caller="test", arguments_json=arguments
    )
    bus.publish(CALLS, encode(message))


@pytest.mark.live
@pytest.mark.timeout(180)  # until the machine lets a robot have its way for three seconds
@pytest.mark.feature("F3", "F7")
def test_a_log_of_lcm_logger_replays(tmp_path: Path, bus_url: str, lcm_library: Any) -> None:
    for attempt in itertools.count():
        run_dir = tmp_path / str(attempt)
        run_dir.mkdir()
        ours, theirs = run_dir / "ours.lcmlog", run_dir / "theirs.lcmlog"
        with running(Path(lcm_library.LCM_BIN_DIR) / "lcm-logger", "-q", f"--lcm-url={bus_url}", theirs):
            lag = asyncio.run(live_mission(bus_url, run_dir, ours))
        if max(lag, apart(ours, theirs)) < LIVE.time_s / 2 and longest_blindness(ours) < 0.5:
            break
    for path in (ours, theirs):
        report = replay(path, ReplayOptions(modules=("follow",), blueprint=resolve("robot-only")))
        assert report.tolerances == LIVE
        assert report.passed, "\n".join(report.lines())
        compared = {stream.stream: stream.matched for stream in report.streams}
        assert compared[SKILL_VEL] > 20
        assert report.calls == 2
        changed = {"follow.max_speed": 0.7}
        other = replay(path, ReplayOptions(modules=("follow",), blueprint=resolve("robot-only"), settings=changed))
        assert not other.passed


@pytest.mark.live
@pytest.mark.feature("F7")
@pytest.mark.parametrize("player", ["lcm-logplayer", "dimos-streams"])
def test_live_modules_react_to_what_is_played(
    mission_log: Path, bus_url: str, player: str, request: pytest.FixtureRequest
) -> None:
    plans = [plan for plan in plan_modules(resolve("robot-only")) if plan.spec.name == "follow"]
    sent: list[Twist] = []
    heard: list[ToolEvent] = []

    async def scenario() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        host = ModuleHost(bus)
        for plan in plans:
            await host.start(instantiate(plan.spec, RunContext()), plan.topics)
        bus.subscribe(SKILL_VEL, lambda channel, data: sent.append(decode(Twist, data)))
        bus.subscribe(EVENTS, lambda channel, data: heard.append(unpack_event(data)))
        await until(lambda: any(event.data.get("event") == "found" for event in heard))
        await until(lambda: any(twist.linear.x > 0.5 for twist in sent))
        await until(lambda: any(event.skill == "stop_following" and event.type == "close" for event in heard))
        await host.stop()
        await bus.close()

    ours = ("--without", "/skill_vel", "--without", "/tool_streams", "--speed", "4", "--bus", bus_url)
    if player == "lcm-logplayer":
        binaries = Path(request.getfixturevalue("lcm_library").LCM_BIN_DIR)
        with running(binaries / player, "--speed=4", f"--lcm-url={bus_url}", filtered(mission_log)):
            asyncio.run(scenario())
    else:
        with running(sys.executable, "-m", "dimos_streams", "replay", mission_log, *ours):
            asyncio.run(scenario())


def filtered(path: Path) -> Path:
    """The log without what the modules said, so that it is they who say it now."""
    target = path.with_name("inputs.lcmlog")
    outputs = ("--without", "/skill_vel", "--without", "/tool_streams")
    assert run_command(["recording", "cut", str(path), "-o", str(target), *outputs]) == 0
    with LogReader(target) as log:
        assert all(event.channel != SKILL_VEL for event in log.events())
    return target
