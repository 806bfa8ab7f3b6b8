"""An operator's stop reaches the robot past an agent that does not react."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from tests.cli.machine import Machine, Result
from tests.helpers import until
from tests.live.mission import loop_time, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(120), pytest.mark.feature("K5")]


async def steer(bus_url: str) -> None:
    """Want to turn the robot, as a joystick does."""
    bus = create_bus(bus_url)
    await bus.open()
    try:
        while True:
            bus.publish(channel_name("/teleop_vel", Twist), encode(Twist(angular=Vector3(z=0.8))))
            await asyncio.sleep(0.05)
    finally:
        await bus.close()


def test_stop_robot_needs_no_agent(bus_url: str, free_port: int, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "state", bus=bus_url, port=free_port)

    async def command(*arguments: str) -> Result:
        return await asyncio.to_thread(machine, *arguments, "--port", str(free_port))

    async def main() -> None:
        (tmp_path / "run").mkdir()
        async with running(bus_url, free_port, tmp_path / "run") as mission:
            followed = await mission.follow()
            mission.kill("agent", signal.SIGSTOP)
            stopping = await command("stop-robot", "--reason", "a child on the floor")
            assert (stopping.code, stopping.err) == (0, ""), stopping
            assert stopping.out == "every robot is stopped, held by gate; 1 call has ended\n"
            (stop,) = (await asyncio.to_thread(mission.stopped))["stops"]
            moment = loop_time(stop["utime"])
            await until(lambda: mission.still_since(moment) is not None)
            assert (mission.still_since(moment) or 0.0) <= 1.0
            assert (await mission.view(followed)).outcome == "cancelled"

            refused = await command("call", "move", "--arg", "distance_m=0.3")
            assert refused.code == 1
            assert "an operator has stopped (a child on the floor)" in refused.err

            joystick = asyncio.create_task(steer(bus_url))
            mission.kill("gate", signal.SIGKILL)
            mission.kill("bridge", signal.SIGKILL)
            mission.kill("agent", signal.SIGCONT)
            await asyncio.gather(mission.until_restarted("gate"), mission.until_restarted("bridge"))
            await until(lambda: mission.speeds[-1][0] > moment + 3.0)
            still = mission.still_since(moment)
            assert still is not None, "it moves"
            assert still <= 1.0, "it stands, whatever the agent and a joystick want, with a new gate and a new bridge"
            joystick.cancel()
            await asyncio.wait([joystick])
            assert (await asyncio.to_thread(mission.stopped))["stops"] == [stop]

            released = await command("release-robot")
            assert (released.code, released.out) == (0, "every robot may move again; nothing goes on by itself\n")
            assert (await mission.drive("turn", angle_deg=30)).outcome == "completed"

            mission.kill("gate", signal.SIGSTOP)
            stopping = await command("stop-robot")
            assert stopping.code == 1
            assert "NOT held: gate: it has been silent for" in stopping.out
            mission.kill("gate", signal.SIGCONT)

    asyncio.run(main())
