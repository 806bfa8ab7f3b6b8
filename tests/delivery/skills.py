"""Skills whose every event can be foretold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.skill import Call, skill


@dataclass
class Body:
    """One run of a skill, as its process saw it."""

    call_id: str
    skill: str
    life: int
    """Which start of its module it was in."""
    begun: float
    ended: float | None = None


class NoConfig(ModuleConfig):
    """Nothing to set."""


class Talker(Module):
    """Its skills count: update ``n`` has text ``str(n)``, progress ``n`` the text ``p n``."""

    config: NoConfig

    def __init__(self, bodies: list[Body], life: int, *, name: str, context: RunContext) -> None:
        super().__init__(name=name, context=context)
        self._bodies, self._life = bodies, life

    async def _count(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        body = Body(call.id, call.skill, self._life, clock.monotonic())
        self._bodies.append(body)
        try:
            for number in range(1, to + 1):
                await call.update(str(number))
                call.progress(f"p {number}")
                await asyncio.sleep(pause_ms / 1000)
            if fail:
                raise SkillError("it was to fail")
            if call.skill == "hold":
                await asyncio.Event().wait()
            return to
        finally:
            body.ended = clock.monotonic()


class Walker(Talker):
    """Moves the base."""

    @skill(resources={"base"})
    async def drive(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Drive."""
        return await self._count(call, to, pause_ms, fail)

    @skill(resources={"base", "head"}, on_duplicate="replace")
    async def patrol(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Patrol."""
        return await self._count(call, to, pause_ms, fail)


class Watcher(Talker):
    """Moves the head, and begins what others do."""

    @skill(resources={"head"})
    async def look(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Look."""
        return await self._count(call, to, pause_ms, fail)

    @skill
    async def talk(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Talk."""
        return await self._count(call, to, pause_ms, fail)

    @skill(resources={"arm"})
    async def hold(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Hold something until it is to let go."""
        return await self._count(call, to, pause_ms, fail)

    @skill
    async def chain(self, call: Call, to: int, pause_ms: int, fail: bool = False) -> int:
        """Talk, then begin to drive."""
        count = await self._count(call, to, pause_ms, fail)
        await call.skills.start("drive", {"to": to, "pause_ms": pause_ms})
        return count
