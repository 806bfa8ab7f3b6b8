"""Blueprints for the tests of the command line."""

from __future__ import annotations

import asyncio

from dimos_streams import clock
from dimos_streams.agent.module import Agent
from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.bridge.module import Bridge
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module
from dimos_streams.streams import Out
from tests.cli.modules import Rover


class Starter(Module):
    """Calls a skill over the bus, as a script without a bridge would."""

    skill_calls: Out[SkillCall]

    async def run(self) -> None:
        while True:
            call = SkillCall(utime=clock.utime(), call_id="c1", module="rover", skill="wander", caller="starter")
            self.skill_calls.publish(call)
            await asyncio.sleep(0.1)


self_starting = blueprint("self-starting", module(Rover, name="rover"), module(Starter, name="starter"))

_rover = blueprint("rover", module(Rover, name="rover"), module(Agent, name="agent"))
two_rovers = blueprint(
    "two-rovers", module(Bridge, name="bridge"), include(_rover, namespace="one"), include(_rover, namespace="two")
)
