"""A log is not played where a robot runs: it would take it for true, and obey the commands in it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import GATE, VelocityGateState
from dimos_streams.tool_stream.event import STATUS
from tests.helpers import until

pytestmark = pytest.mark.live


@pytest.fixture
def robot(bus_url: str) -> Iterator[list[str]]:
    """A velocity gate that beats, and what is on the bus meanwhile."""
    heard: list[str] = []
    ended = threading.Event()
    ready = threading.Event()
    state = json.dumps({GATE: VelocityGateState(listens=True, still=True).model_dump(mode="json")})

    async def beat() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        bus.subscribe_all(lambda channel, data: heard.append(channel))
        while not ended.is_set():
            bus.publish(STATUS, encode(ModuleStatus(module="gate", instance="1", health="ok", state_json=state)))
            ready.set()
            await asyncio.sleep(0.05)
        await bus.close()

    thread = threading.Thread(target=asyncio.run, args=(beat(),))
    thread.start()
    assert ready.wait(10)
    yield heard
    ended.set()
    thread.join()


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
