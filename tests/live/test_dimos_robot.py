"""Our skills on a robot that speaks dimos' keys and bytes: it is seen, moved, and missed when it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import sys
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams.blueprint import blueprint, include
from dimos_streams.messages.image import array_from_image
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live import dimos_standin
from tests.live.mission import Mission, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

ROBOT = blueprint(
    "dimos-robot-without-a-model",
    include(
        "dimos-robot",
        without=["agent", "detector", "follow", "lookout"],
        set={"drive.odom_timeout_s": 2.0},  # on a busy machine processes wait for their turn
    ),
    external=("detections#vision_msgs.Detection2DArray",),
)


class StandIn:
    """The robot's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.state: dict[str, float] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @contextlib.asynccontextmanager
    async def begun(cls, prefix: str, group: str) -> AsyncIterator[StandIn]:
        pipe = asyncio.subprocess.PIPE
        program = (sys.executable, dimos_standin.__file__, prefix, group)
        made = cls(await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe))
        try:
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                made.process.kill()
            await made.process.wait()
            await made._reading

    def misbehave(self, how: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{how}\n".encode())

    @property
    def stands(self) -> bool:
        return self.state["speed"] == 0.0 and self.state["turn"] == 0.0

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # half a line, when it is killed
                self.state = json.loads(line)


def scouting_group(zenoh_url: str) -> str:
    """A group of the domain's own: robots of dimos look at the usual one, in whatever domain."""
    return f"224.0.0.224:{30_000 + zlib.crc32(zenoh_url.encode()) % 9_000}"


async def moved_and_turned(mission: Mission, robot: StandIn) -> None:
    call = await mission.call("move", distance_m=0.4)
    assert call.outcome is Outcome.COMPLETED, (call.text, robot.state)
    await until(lambda: robot.stands)
    assert robot.state["x"] == pytest.approx(0.4, abs=0.1)
    call = await mission.call("turn", angle_deg=45)
    assert call.outcome is Outcome.COMPLETED, (call.text, robot.state)
    await until(lambda: robot.stands)
    assert math.degrees(robot.state["yaw"]) == pytest.approx(45, abs=8)


async def seen(mission: Mission) -> None:
    """Through its camera: the person by name and direction, at no known distance; blue is blue."""
    call = await mission.call("observe")
    assert call.outcome is Outcome.COMPLETED, call
    (thing,) = call.result["things"]
    assert (thing["label"], thing["distance_m"], thing["track"]) == ("person in red", None, "7")
    assert thing["bearing_deg"] == pytest.approx(17.2, abs=0.2)
    assert call.result["robot"]["yaw_deg"] == pytest.approx(45, abs=8)
    assert mean_colour(call.result["picture"]) == pytest.approx((0, 0, 255), abs=4)


def mean_colour(path: str) -> tuple[float, ...]:
    jpeg = Image(width=64, height=48, encoding="jpeg", data=Path(path).read_bytes())
    return tuple(array_from_image(jpeg).mean(axis=(0, 1)))


async def misunderstood(mission: Mission, robot: StandIn, log: Path) -> None:
    """What is no message of the type it claims, or can't be a picture, is one line, and moves nothing."""

    async def said(how: str, *parts: str) -> None:
        robot.misbehave(how)

        def lines() -> list[str]:
            return [line for line in log.read_text().splitlines() if all(part in line for part in parts)]

        await until(lambda: bool(lines()))

    robot.misbehave("encoding")
    while (await mission.call("observe")).result["picture"] is not None:
        pass  # of what it has sent before
    await said("encoding", "/color_image#sensor_msgs.Image can't be kept", "unknown encoding 'yuv422'")
    await said("labels", "detections on /detections#vision_msgs.Detection2DArray have no labels")
    await said("pickle", "skipped: bad geometry_msgs.PoseStamped", "a Python pickle, which is never read")
    call = await mission.call("move", distance_m=0.4)
    assert call.outcome is Outcome.FAILED, call
    assert re.match(r"odometry comes, but .*pickle.* never read; last standing at x 0\.[345]", call.text), call.text
    assert robot.stands
    robot.misbehave("")


async def missed(mission: Mission, robot: StandIn) -> None:
    """The call of a robot that vanishes ends with one line that says why."""
    await mission.call("turn", angle_deg=10)
    call_id = await mission.gateway.call("move", {"distance_m": 5.0}, caller="operator")
    await until(lambda: robot.state["speed"] > 0.2)
    robot.process.kill()
    await until(lambda: any(e.call_id == call_id and e.type == "close" for e in mission.events))
    (close,) = (e for e in mission.events if e.call_id == call_id and e.type == "close")
    assert close.outcome is Outcome.FAILED
    assert close.text.startswith("odometry has been silent for 2 s; last ")
    assert "\n" not in close.text


@pytest.mark.feature("G2")
def test_a_robot_of_dimos_is_seen_and_moved_and_missed(zenoh_url: str, free_port: int, tmp_path: Path) -> None:
    domain, group = zenoh_url.rpartition("/")[2], scouting_group(zenoh_url)

    async def scenario() -> None:
        async with StandIn.begun(f"dimos-domains/{domain}", group) as robot:
            url = f"{zenoh_url}?keys=dimos&scout={group}"
            async with running(url, free_port, tmp_path, ROBOT) as mission:
                await mission.until_offered("move", "turn", "observe")
                await moved_and_turned(mission, robot)
                await seen(mission)
                await misunderstood(mission, robot, tmp_path / "logs" / "skills.log")
                await missed(mission, robot)

    asyncio.run(scenario())
