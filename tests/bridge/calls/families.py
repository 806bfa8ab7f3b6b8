"""A module whose skills run other skills, and what tests look at in the trees of calls that this makes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from dimos_streams.errors import SkillError, SkillRunError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Scene
from tests.helpers import until


class Composer(Module):
    """Runs what it is told to, in every way."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard: list[tuple[str, Mapping[str, Any]]] = []
        self.errors: list[SkillRunError] = []
        self.running: list[str] = []

    @skill
    async def use(self, call: Call, skill: str, arguments: dict[str, Any], quiet: bool = True) -> Any:
        """Run one skill; its result."""
        return await self._use(call, skill, arguments, quiet)

    @skill(resources={"base"})
    async def use_base(self, call: Call, skill: str, arguments: dict[str, Any]) -> Any:
        """Run one skill while holding the base."""
        return await self._use(call, skill, arguments, True)

    @skill(resources={"base"}, on_duplicate="replace")
    async def replacing(self, call: Call, skill: str, arguments: dict[str, Any]) -> Any:
        """Run one skill, in place of a call of this one."""
        return await self._use(call, skill, arguments, True)

    @skill
    async def leave(self, call: Call, skill: str, arguments: dict[str, Any], ends: str) -> None:
        """Begin to run a skill, and end without it."""
        self.left = asyncio.create_task(call.skills.run(skill, arguments))
        self.left.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._began(call)
        if ends == "fails":
            raise SkillError("no more")
        if ends == "hangs":
            await asyncio.sleep(1000)

    @skill(time_limit_s=1.0)
    async def hurry(self, call: Call, skill: str, arguments: dict[str, Any]) -> Any:
        """Run a skill, but not for long."""
        return await self._use(call, skill, arguments, True)

    @skill
    async def deaf(self, call: Call, skill: str, arguments: dict[str, Any]) -> None:
        """Run a skill, and hear nothing of one's own cancellation for long."""
        self.left = asyncio.create_task(call.skills.run(skill, arguments))
        self.left.add_done_callback(lambda task: task.cancelled() or task.exception())
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        await asyncio.sleep(20)

    @skill
    async def one_after_the_other(self, call: Call, steps: int) -> list[int]:
        """Give up a skill, and run another one that needs the same."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await call.skills.run("follow", description="ann")
        return [await call.skills.run("at_once", value=step) for step in range(steps)]

    @skill
    async def at_the_same_time(self, call: Call) -> list[Any]:
        """Run two skills that need the same."""
        first = asyncio.create_task(call.skills.run("follow", description="ann", steps=20))
        await self._began(call)
        try:
            return [await call.skills.run("at_once", value=1), await first]
        except SkillRunError as error:
            return [str(error), await first]

    @skill(read_only=True)
    async def look(self, call: Call) -> None:
        """Change nothing, one hopes."""
        await call.skills.run("at_once", value=1)

    @skill
    async def spread(self, call: Call, tree: list[Any], seconds: float) -> int:
        """Run a skill like this one for each branch of a tree, there where that says; how many there are."""
        self.running.append(call.id)
        try:
            runs = [call.skills.run(f"/{where}/spread", tree=branch, seconds=seconds) for where, branch in tree]
            found: list[int] = await asyncio.gather(*runs)
            await asyncio.sleep(seconds)
            return 1 + sum(found)
        finally:
            self.running.remove(call.id)

    async def _use(self, call: Call, skill: str, arguments: dict[str, Any], quiet: bool) -> Any:
        def hear(text: str, data: Mapping[str, Any]) -> None:
            self.heard.append((text, data))

        try:
            return await call.skills.run(skill, arguments, on_update=hear, quiet=quiet)
        except SkillRunError as error:
            self.errors.append(error)
            raise

    async def _began(self, call: Call) -> None:
        await asyncio.sleep(0.5)


async def child_of(world: Scene, call_id: str, *, answered: bool = True) -> str:
    """The first child of a call, once it has answered or at least begun."""
    child = f"{call_id}~1"

    def there() -> bool:
        call = world.broker.ledger.calls.get(child)
        return call is not None and (call.answer is not None if answered else call.state == "open")

    await until(there)
    return child


async def outcome_of(world: Scene, call_id: str) -> Outcome | None:
    """How a call has ended."""
    return (await world.broker.view(call_id)).outcome


def open_calls(world: Scene) -> list[str]:
    return [call.call_id for call in world.broker.ledger.calls.open]
