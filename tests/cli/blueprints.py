"""Blueprints for the tests of the command line."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings

from dimos_streams import clock
from dimos_streams.agent.module import Agent
from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.bridge.module import Bridge
from dimos_streams.common.secrets import VARIABLES
from dimos_streams.errors import SkillError
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.perception.module import PersonDetector
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from tests.cli.modules import Lookout, Rover


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

lookout = blueprint("lookout", module(Lookout, name="lookout"), external=("position#std_msgs.String",))
clashing = blueprint("clashing", module(Rover, name="rover"), module(Rover, name="other"))
hopeless = blueprint(
    "hopeless",
    module(Lookout, name="lookout", remap={"position": "where"}),
    external=("where#std_msgs.String", "weather#std_msgs.String"),
)


class Unplugged(Module):
    """Fails as soon as it runs."""

    async def run(self) -> None:
        raise ConnectionError("the camera is unplugged")


unplugged = blueprint("unplugged", module(Unplugged, name="camera"), module(Rover, name="rover"))

asking_a_vision_model = blueprint(
    "asking",
    module(PersonDetector, name="detector", backend="vlm", vlm={"model": "eyes-1"}),
    external=(
        "color_image#sensor_msgs.Image",
        "camera_info#sensor_msgs.CameraInfo",
        "wanted_descriptions#std_msgs.String",
    ),
)

NASTY = "\x1b[2J\x07\x9b31m\u202e\u2028evil\r\n2026-01-01 00:00:00,000+0000 INFO forged line\n\x00end"
"""Commands for a terminal, a bell, text that runs backwards, and what looks like a line of a log."""


class Nasty(Module):
    """Says to everybody what a terminal would obey."""

    position: Out[String]

    async def run(self) -> None:
        self.health = NASTY
        self.log.warning("something is wrong: %s", NASTY)
        try:
            raise ValueError(NASTY)
        except ValueError:
            self.log.exception("it failed")
        while True:
            self.position.publish(String(data=NASTY))
            await asyncio.sleep(0.05)

    @skill
    async def babble(self, call: Call, text: str = "") -> dict[str, str]:
        await call.update(NASTY, nasty=NASTY)
        call.progress(NASTY)
        await asyncio.sleep(0.1)
        return {"said": NASTY, NASTY: text}

    babble.__doc__ = f"Say something.\n\n{NASTY}"

    @skill
    async def stumble(self) -> None:
        """Fail."""
        raise SkillError(NASTY)


class Careless(Module):
    """Prints, logs and warns of what nobody else may read."""

    async def run(self) -> None:
        key, token = (os.environ.get(name, "") for name in VARIABLES)
        print("the key is", key, "and the token", token)  # noqa: T201
        print(f"the key is {key}", file=sys.stderr)  # noqa: T201
        warnings.warn(f"the key is {key}", stacklevel=1)
        await asyncio.Event().wait()


_nasty = (module(Nasty, name="nasty"), module(Bridge, name="bridge"), module(Agent, name="agent"))
nasty = blueprint("nasty", *_nasty, description=NASTY)
careless = blueprint("careless", *_nasty, module(Careless, name="careless"))
