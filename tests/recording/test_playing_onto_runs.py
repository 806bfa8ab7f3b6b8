"""A log is not played where a robot runs: it would take it for true, and obey the commands in it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import GATE, VelocityGateState
from dimos_streams.recording import robot_watch
from dimos_streams.recording.cut import LogPart
from dimos_streams.recording.player import Player
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.robot_watch import RobotWatch
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.helpers import until
from tests.recording.logs import read_log

pytestmark = pytest.mark.live


@contextmanager
def gate_on(bus_url: str, *, begins: Callable[[list[str]], bool] = lambda heard: True) -> Iterator[list[str]]:
    """A velocity gate that beats from the moment on that the condition on what is heard holds; the channels of all
    that is on the bus meanwhile."""
    heard: list[str] = []
    ended = threading.Event()
    ready = threading.Event()
    state = json.dumps({GATE: VelocityGateState(listens=True, still=True).model_dump(mode="json")})

    async def beat() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        bus.subscribe_all(lambda channel, data: heard.append(channel))
        ready.set()
        while not ended.is_set():
            if begins(heard):
                bus.publish(STATUS, encode(ModuleStatus(module="gate", instance="1", health="ok", state_json=state)))
            await asyncio.sleep(0.05)
        await bus.close()

    thread = threading.Thread(target=asyncio.run, args=(beat(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield heard
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def robot(bus_url: str) -> Iterator[list[str]]:
    """A velocity gate that beats, and what is on the bus meanwhile."""
    with gate_on(bus_url) as heard:
        yield heard


def test_a_log_is_not_played_where_a_robot_runs(
    command: Any, mission_log: Path, bus_url: str, robot: list[str]
) -> None:
    code, _, error = command("replay", str(mission_log), "--bus", bus_url, "--speed", "1000")
    assert code == 2
    assert "(velocity gate 'gate'): it would take the log for true" in error
    assert "--onto-run" in error
    assert {channel for channel in robot if channel.startswith(("/cmd_vel", "/skill_calls"))} == set()


def test_it_is_where_somebody_says_so(command: Any, mission_log: Path, bus_url: str, robot: list[str]) -> None:
    only = ("--channels", "/cmd_vel")
    code, out, _ = command("replay", str(mission_log), "--bus", bus_url, "--speed", "1000", "--onto-run", *only)
    assert code == 0
    assert "published " in out
    run_live(until(lambda: any(channel.startswith("/cmd_vel") for channel in robot)))


@pytest.mark.parametrize("more", [(), ("--loop",)])
def test_one_that_plays_ends_when_a_robots_run_starts(
    command: Any, mission_log: Path, bus_url: str, more: tuple[str, ...]
) -> None:
    def played(heard: list[str]) -> bool:
        return any(channel.startswith("/cmd_vel") for channel in heard)

    with gate_on(bus_url, begins=played):
        code, out, error = command("replay", mission_log, "--bus", bus_url, "--speed", "2", *more)
    assert (code, out) == (1, "")
    (line,) = error.splitlines()
    count = re.search(r"playing ended after (\d+) messages: a robot runs on .* \(velocity gate 'gate'\)", line)
    assert count is not None
    assert 0 < int(count[1]) < len(read_log(mission_log)) / 2
    assert "--onto-run" in line


@pytest.mark.virtual_time
async def test_nothing_is_sent_once_a_gate_is_heard(mission_log: Path) -> None:
    bus = create_bus("memq://")
    await bus.open()
    sent: list[int] = []
    status = ModuleStatus(module="gate", instance="1", health="ok", state_json=json.dumps({GATE: {}}))
    with LogReader(mission_log) as log:
        player = Player([log], LogPart(), speed=1000)

        def end() -> None:
            sent.append(player.published)
            playing.cancel()

        watch = RobotWatch(bus, end)
        playing = asyncio.ensure_future(player.play(bus, on_message=watch.note))
        watch.start()
        await until(lambda: player.published > 200)
        bus.publish(STATUS, encode(status))
        with pytest.raises(asyncio.CancelledError):
            await playing
    watch.stop()
    await bus.close()
    assert (watch.gate, sent) == ("gate", [player.published])


def test_the_gate_of_the_log_itself_is_none(command: Any, mission_log: Path, bus_url: str) -> None:
    assert any(GATE.encode() in event.data for event in read_log(mission_log) if event.channel == STATUS)
    code, out, _ = command("replay", mission_log, "--bus", bus_url, "--speed", "50")
    assert code == 0
    assert out.startswith("published ")


@pytest.mark.virtual_time
async def test_heartbeats_that_are_played_for_ever_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_watch, "_MOST_PLAYED", 10)
    bus = create_bus("memq://")
    await bus.open()
    heard: list[str] = []
    watch = RobotWatch(bus, lambda: heard.append(watch.gate))
    watch.start()
    for utime in range(100):
        state = json.dumps({GATE: {}})
        beat = encode(ModuleStatus(module="gate", instance="1", health="ok", state_json=state, utime=utime))
        watch.note(STATUS, beat)
        bus.publish(STATUS, beat)
        await asyncio.sleep(0.01)
    assert (len(watch._played), heard) == (10, [])
    watch.stop()
    await bus.close()
