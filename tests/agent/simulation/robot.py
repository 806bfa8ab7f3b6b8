"""A robot whose every motion is known: skills that write down when they ran."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, RunContext
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from tests.agent.stage import NoConfig

_PERIOD_S = 0.1
UNDOES = {"go_back": "go", "let_go": "grab"}
RESOURCES = {"go": "base", "go_back": "base", "follow": "base", "grab": "arm", "let_go": "arm"}
MOTIONS = frozenset({"go", "go_back", "follow", "jump"})


@dataclass
class Body:
    """One run of a skill, as its process saw it. Its tag tells it from all others that were asked for."""

    tag: str
    call_id: str
    skill: str
    life: int
    """Which start of its module it was in."""
    began: float
    seconds: float
    ended: float | None = None

    @property
    def of_agent(self) -> bool:
        """True if the agent's model asked for it, or a skill that this one asked for."""
        return self.tag.startswith("t")


class Acting(Module):
    """Writes down what its skills do."""

    config: NoConfig

    def __init__(self, bodies: list[Body], life: int, *, name: str, context: RunContext) -> None:
        super().__init__(name=name, context=context)
        self.bodies, self.life = bodies, life

    @contextlib.contextmanager
    def body(self, call: Call, tag: str, seconds: float = 0.0) -> Iterator[Body]:
        body = Body(tag, call.id, call.skill, self.life, clock.monotonic(), seconds)
        self.bodies.append(body)
        try:
            yield body
        finally:
            body.ended = clock.monotonic()


class Rover(Acting):
    """Moves, or holds something."""

    skill_vel: Out[Twist]

    async def _drive(self, speed: float, seconds: float) -> None:
        until = clock.monotonic() + seconds
        try:
            while clock.monotonic() < until:
                self.skill_vel.publish(Twist(linear=Vector3(x=speed)))
                await asyncio.sleep(_PERIOD_S)
        finally:
            self.skill_vel.publish(Twist())

    @skill(resources={"base"}, motion=True, undo="go_back")
    async def go(self, call: Call, tag: str, seconds: float = 1.0) -> str:
        """Go."""
        with self.body(call, tag, seconds):
            await self._drive(0.5, seconds)
        return f"went for {seconds:g} s"

    @skill(resources={"base"}, motion=True, audience="operator")
    async def go_back(self, call: Call, arguments: dict[str, Any], result: Any = None) -> str:
        """Take a go back."""
        with self.body(call, arguments["tag"]):
            await self._drive(-0.5, min(1.0, arguments.get("seconds", 1.0)))
        return "went back"

    @skill(resources={"base"}, motion=True, on_duplicate="replace", on_loss="continue", reversible=False)
    async def follow(self, call: Call, tag: str, seconds: float = 5.0) -> str:
        """Follow somebody."""
        with self.body(call, tag, seconds):
            await call.update(f"following {tag}")
            call.progress("near")
            await self._drive(0.3, seconds)
            await call.update("has left")
        return "left"

    @skill(resources={"arm"}, undo="let_go", approval="ask")
    async def grab(self, call: Call, tag: str, seconds: float = 0.5) -> str:
        """Grab something."""
        with self.body(call, tag, seconds):
            await asyncio.sleep(seconds)
        return f"grabbed {tag}"

    @skill(resources={"arm"}, audience="operator")
    async def let_go(self, call: Call, arguments: dict[str, Any], result: Any = None) -> str:
        """Take a grab back."""
        with self.body(call, arguments["tag"]):
            await asyncio.sleep(0.2)
        return "let go"

    @skill(motion=True, approval="ask", reversible=False)
    async def jump(self, call: Call, tag: str, seconds: float = 0.4) -> str:
        """Jump."""
        with self.body(call, tag, seconds):
            await self._drive(0.2, seconds)
        return "jumped"


class Eyes(Acting):
    """Senses, and begins what others do."""

    @skill(concurrent=True)
    async def look(self, call: Call, tag: str, seconds: float = 0.1) -> str:
        """Look."""
        with self.body(call, tag, seconds):
            await asyncio.sleep(seconds)
        return "seen"

    @skill
    async def watch(self, call: Call, tag: str, count: int = 3, seconds: float = 0.3) -> str:
        """Watch."""
        with self.body(call, tag, seconds):
            for number in range(1, count + 1):
                await call.update(str(number))
                call.progress(f"p {number}")
                await asyncio.sleep(seconds)
        return "nothing more"

    @skill(reversible=False)
    async def then(self, call: Call, tag: str, skill: str, seconds: float = 0.5) -> str:
        """Wait, and begin another skill."""
        with self.body(call, tag, seconds):
            await call.update("waiting")
            await asyncio.sleep(seconds)
            return await call.skills.start(skill, {"tag": f"{tag}+"})

    @skill(reversible=False)
    async def routine(self, call: Call, tag: str, skill: str) -> str:
        """Run another skill as a part."""
        with self.body(call, tag):
            await call.update("running it")
            return str(await call.skills.run(skill, {"tag": f"{tag}*"}))

    @skill
    async def fail(self, call: Call, tag: str) -> None:
        """Fail."""
        with self.body(call, tag):
            await asyncio.sleep(0.05)
            raise SkillError("the door is locked")
