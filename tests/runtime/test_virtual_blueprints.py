"""The stock blueprints `patrol` and `two-robots`, whole, in virtual time, judged by what is true in the simulator."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.bus import Bus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway
from tests.helpers import run_virtual

pytestmark = pytest.mark.slow

Point = tuple[float, float]


@dataclass
class Truth:
    """Where everything is, in each robot's simulator."""

    topics: tuple[str, ...] = ("/ground_truth",)
    positions: dict[str, dict[str, Point]] = field(default_factory=lambda: defaultdict(dict))

    @contextlib.asynccontextmanager
    async def attach(self, bus: Bus) -> AsyncIterator[None]:
        for topic in self.topics:
            bus.subscribe(f"{topic}#{TFMessage.msg_name}", self._take)
        yield

    def _take(self, channel: str, data: bytes) -> None:
        self.positions[channel.partition("#")[0]] = {
            transform.child_frame_id: (transform.transform.translation.x, transform.transform.translation.y)
            for transform in decode(TFMessage, data).transforms
        }

    def robot(self, topic: str = "/ground_truth") -> Point:
        return self.positions[topic]["base_link"]

    def distance(self, person: str, topic: str = "/ground_truth") -> float:
        """Between the robot and a person; infinite if the person is not there."""
        there = self.positions[topic].get(person)
        return math.inf if there is None else math.dist(self.robot(topic), there)


async def call_of(gateway: SkillGateway, skill: str) -> str:
    """The first call of a skill."""
    async for entry in gateway.events(after=0):
        if entry.event.skill == skill:
            return entry.event.call_id
    raise AssertionError("the events have ended")


async def event_of(gateway: SkillGateway, call_id: str, condition: Callable[[ToolEvent], object]) -> ToolEvent:
    """The first event of a call for which a condition holds."""
    async with asyncio.timeout(120.0):
        async for entry in gateway.events(after=0, call_id=call_id):
            if condition(entry.event):
                return entry.event
    raise AssertionError("the events have ended")


def stock(name: str, **settings: object) -> Blueprint:
    found = resolve(name)
    robots = [module for module in found.modules if module.endswith("robot")]
    small = {
        f"{robot}.{side}": size for robot in robots for side, size in (("camera_width", 160), ("camera_height", 120))
    }
    return found.configured(small | {key.replace("__", "."): value for key, value in settings.items()}, source="test")


def test_a_guard_follows_whoever_comes_in_and_returns_to_its_round() -> None:
    events = [
        {"at_s": 0, "hide": "person_red"},
        {"at_s": 6, "show": "person_red"},
    ]
    patrol = stock(
        "patrol", robot__events=events, patrol__waypoints=[[-1.4, -1.7], [-1.4, 0.0]], patrol__follow_s=8.0
    )
    truth = Truth()

    async def scenario() -> None:
        run = InProcessRun(patrol, RunOptions(bus_url="memq://", seed=3), attach=[truth.attach])
        await run.start()
        gateway = run.gateway
        assert gateway is not None
        said = await gateway.call("say", {"text": "patrol"}, caller="operator")
        guard = await call_of(gateway, "patrol")
        assert (
            "On patrol: 2 way-points" in (await event_of(gateway, guard, lambda event: event.type == "update")).text
        )
        seen = await event_of(gateway, guard, lambda event: event.data.get("event") == "seen")
        assert seen.text.startswith("Saw person in a red shirt and blue trousers at (")
        assert math.dist((seen.data["x"], seen.data["y"]), truth.positions["/ground_truth"]["person_red"]) < 0.5
        await event_of(gateway, guard, lambda event: event.data.get("event") == "found")
        await asyncio.sleep(6.0)
        assert 1.0 <= truth.distance("person_red") <= 2.5
        back = await event_of(gateway, guard, lambda event: event.data.get("event") == "back")
        closed = await event_of(gateway, guard, lambda event: event.type == "close")
        later = await event_of(
            gateway, guard, lambda event: event.seq > back.seq and event.data.get("event") == "waypoint"
        )
        assert math.dist((later.data["x"], later.data["y"]), (-1.4, 0.0)) < 0.25
        assert closed.text.startswith("Patrolled 1 round, 2 way-points. Met person in a red shirt")
        assert math.dist(truth.robot(), (-2.4, -0.9)) < 0.25
        reported = await event_of(gateway, said, lambda event: event.type == "close")
        assert reported.data["outcome"] == "completed"
        await run.stop()

    run_virtual(scenario(), limit_s=200.0)


def test_one_operator_talks_to_two_robots_with_agents_of_their_own() -> None:
    truth = Truth(("/robot1/ground_truth", "/robot2/ground_truth"))

    async def scenario() -> None:
        run = InProcessRun(stock("two-robots"), RunOptions(bus_url="memq://", seed=1), attach=[truth.attach])
        await run.start()
        gateway = run.gateway
        assert gateway is not None
        for robot, colour in (("robot1", "red"), ("robot2", "green")):
            words = f"follow the person in {colour}"  # each agent is offered the skills of its own robot only
            await gateway.call(f"{robot}_say", {"text": words}, caller="operator")
        for robot, colour in (("robot1", "red"), ("robot2", "green")):
            call_id = await call_of(gateway, f"{robot}_follow_person")
            found = await event_of(gateway, call_id, lambda event: event.data.get("event") == "found")
            assert found.text == f"Following person in {colour}"
            assert (found.module, found.caller) == (f"{robot}/follow", f"{robot}/agent")
        await asyncio.sleep(6.0)
        for robot, person in (("robot1", "person_red"), ("robot2", "person_green")):
            assert 0.9 <= truth.distance(person, f"/{robot}/ground_truth") <= 3.0
        await run.stop()

    run_virtual(scenario(), limit_s=200.0)
