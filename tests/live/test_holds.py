"""A robot in another run than its agent: held is what its velocity gate says, and nothing else."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from dimos_streams.blueprint.compose import blueprint, include, module
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.robot.simulator import Simulator
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from tests.cli.machine import Machine, Result
from tests.helpers import until
from tests.live.mission import running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

_GATE = module(VelocityGate, name="gate", restart="never", remap={"scan": None})
_DEAF = module(VelocityGate, name="gate", restart="never", remap={"scan": None, "hold": None})
_SIMULATOR = module(Simulator, name="robot", people=[], camera_hz=0.1)
_COMMANDED = ("skill_vel#geometry_msgs.Twist",)
ROBOTS = blueprint(
    "robots",
    include(blueprint("deaf", _DEAF, external=_COMMANDED), namespace="robot1"),
    include(
        blueprint("hearing", _SIMULATOR, _GATE, external=(*_COMMANDED, "hold#dimos_streams.Hold")), namespace="robot2"
    ),
)
"""Two robots; the first one's gate is not wired to ``/hold``."""
_AGENT = module("dimos_streams.agent.module:Agent", name="agent")
BRAINS = blueprint(
    "brains",
    module("dimos_streams.bridge.module:Bridge", name="bridge"),
    include(blueprint("one", _AGENT), namespace="robot1"),
    include(blueprint("two", _AGENT), namespace="robot2"),
)


ROUND = Twist(linear=Vector3(x=0.2), angular=Vector3(z=0.8))
"""A small circle: there is room for it however long the test takes."""


class Drivers:
    """Skills that want both robots to drive, and what becomes of it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.passed: dict[str, float] = {}
        """The newest forward speed that each robot's gate has let pass."""
        self.position = (0.0, 0.0)
        """The position of the second robot, metres, by the simulator's ground truth."""
        self.rests = False
        """True if it has not moved since the last truth."""
        for robot in ("robot1", "robot2"):
            bus.subscribe(channel_name(f"/{robot}/cmd_vel", Twist), self._on_velocity)
        bus.subscribe(channel_name("/robot2/ground_truth", TFMessage), self._on_truth)

    async def drive(self) -> None:
        while True:
            for robot in ("robot1", "robot2"):
                self._bus.publish(channel_name(f"/{robot}/skill_vel", Twist), encode(ROUND))
            await asyncio.sleep(0.05)

    def _on_velocity(self, channel: str, data: bytes) -> None:
        self.passed[channel.split("/")[1]] = decode(Twist, data, channel=channel).linear.x

    def _on_truth(self, channel: str, data: bytes) -> None:
        for transform in decode(TFMessage, data, channel=channel).transforms:
            if transform.child_frame_id.endswith("base_link"):
                before, place = self.position, transform.transform.translation
                self.position = (place.x, place.y)
                self.rests = math.dist(before, self.position) < 1e-4


async def shown(url: str, agent: str, held: bool) -> dict[str, Any]:
    """The hold of an agent as a console sees it, once the gates do, or do not, confirm it."""
    async with connect(f"{url.replace('http', 'ws')}/monitor?agent={agent}", max_size=None) as socket:
        async for text in socket:
            message = json.loads(text)
            agents = (message.get("snapshot") or message.get("change") or {}).get("agents") or {}
            hold = agents.get(agent, {}).get("hold")
            if hold is not None and bool(hold["held"] and not hold["not_held"]) is held:
                return dict(hold)
    raise AssertionError("the bridge has ended the connection")


@pytest.mark.feature("B3", "B5")
def test_paused_is_what_the_gates_of_another_run_have_said(bus_url: str, free_port: int, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "state", bus=bus_url, port=free_port)

    async def command(*arguments: str) -> Result:
        return await asyncio.to_thread(machine, *arguments, "--port", str(free_port))

    async def scenario(robots: Supervisor, url: str, drivers: Drivers) -> None:
        await until(lambda: drivers.passed.get("robot1", 0.0) > 0.05 and drivers.passed.get("robot2", 0.0) > 0.05)
        for what in ("pause", "abort"):
            reported = await command(what, "--agent", "robot1")
            assert reported.code == 1, reported
            assert "NOT held: robot1/gate: it does not listen to /hold" in reported.out
        await until(lambda: drivers.passed["robot1"] > 0.05)  # and so it is; what is sent late a gate stops by itself

        reported = await command("pause", "--agent", "robot2")
        assert (reported.code, reported.out) == (0, "paused, held by robot2/gate\n"), reported
        assert drivers.passed["robot2"] == 0.0
        await until(lambda: drivers.rests)  # the base has a ramp of its own
        began = drivers.position
        assert (await shown(url, "robot2/agent", held=True))["held"] == ["robot2/gate"]
        assert drivers.position == pytest.approx(began, abs=0.01)

        gate = next(view for view in robots.processes() if "robot2/gate" in view.modules)
        assert gate.pid is not None
        os.kill(gate.pid, signal.SIGKILL)
        (lost,) = (await shown(url, "robot2/agent", held=False))["not_held"]
        assert (lost["gate"], lost["problem"]) == ("robot2/gate", "silent")
        reported = await command("pause", "--agent", "robot2")
        assert reported.code == 1
        assert reported.out.startswith("it is paused already, NOT held: robot2/gate: it has been silent for ")

    async def main() -> None:
        for run in ("robots", "brains"):
            (tmp_path / run).mkdir()
        bus = create_bus(bus_url)
        await bus.open()
        drivers = Drivers(bus)
        driving = asyncio.create_task(drivers.drive())
        robots = Supervisor(ROBOTS, RunOptions(bus_url=bus_url, port=0, run_dir=tmp_path / "robots"), lambda _: None)
        try:
            await robots.start()
            async with running(bus_url, free_port, tmp_path / "brains", BRAINS) as mission:
                await scenario(robots, mission.gateway.url, drivers)
        finally:
            await robots.stop()
            driving.cancel()
            await asyncio.wait([driving])
            await bus.close()

    asyncio.run(main())
