"""A bridge without processes, a robot that is made up, and an agent that has it do things."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dimos_streams.agent.module import Agent
from dimos_streams.module import RunContext, Services
from tests.bridge.scene import Scene
from tests.bridge.serving import Served, served
from tests.browser.busy_robot import CHANNELS, TOPICS, BusyRobot


class Rover:
    """Cheap to have and the same every time, for pages that are about people and not about robots."""

    def __init__(self, bridge: Served, robot: BusyRobot) -> None:
        self.bridge = bridge
        self.robot = robot

    @property
    def url(self) -> str:
        return self.bridge.url

    def say(self, text: str) -> None:
        """Tell the agent something."""
        said = {"skill": "say", "arguments": {"text": text}, "caller": "test"}
        answer = self.bridge.post("/calls", said)
        assert answer.status_code == 201, answer.text

    def open_calls(self) -> int:
        """How many have not ended."""
        return len(self.bridge.run(self.bridge.broker.calls(open_only=True)))

    def end_calls(self) -> None:
        """Back to a robot that does nothing."""
        self.bridge.post("/robots/release", {"robot": ""})
        self.bridge.post("/calls/cancel", {"reason": "the test is over"})


@contextlib.contextmanager
def rover(**config: Any) -> Iterator[Rover]:
    """A run in this process until the end of the block, whose agent has these settings."""
    with served(CHANNELS) as bridge:
        robot = BusyRobot(name="robot")
        bridge.run(_begin(bridge.scene, robot))
        context = RunContext(services=Services(), bridge_url=bridge.url)
        bridge.run(bridge.scene.add(Agent(config, name="agent", context=context)))
        bridge.run(bridge.scene.offered("say"))
        yield Rover(bridge, robot)


async def _begin(scene: Scene, robot: BusyRobot) -> None:
    process = await scene.add()
    await process.host.start(robot, TOPICS)
    process.modules[robot.name] = robot
