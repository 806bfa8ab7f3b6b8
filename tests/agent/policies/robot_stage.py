"""A stage with a robot whose skills have policies, and an operator who decides."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from tests.agent.policies.brain import Brain
from tests.agent.stage import NoConfig, Stage, stage
from tests.helpers import until


class Robot(Module):
    """Skills with policies; ``done`` ends those that go on."""

    config: NoConfig

    async def start(self) -> None:
        """See ``Module``."""
        self.log_: list[str] = []
        self.done = asyncio.Event()
        self.ended = asyncio.Event()
        self.running = 0

    @skill(motion=True)
    async def walk(self, distance_m: Annotated[float, Field(ge=-9, le=9)] = 1.0) -> str:
        """Walk."""
        self.log_.append(f"walk {distance_m:g}")
        return f"walked {distance_m:g} m"

    @skill(motion=True)
    async def go_to(self, x: float, y: float) -> str:
        """Go."""
        self.log_.append(f"go_to {x:g} {y:g}")
        return "there"

    @skill(approval="ask")
    async def drop(self, what: str = "parcel") -> str:
        """Drop something."""
        self.log_.append(f"drop {what}")
        return f"dropped {what}"

    @skill(concurrent=True, polling=True)
    async def look(self) -> str:
        """Look."""
        return "nothing new"

    @skill
    async def fail(self) -> str:
        """Fail at length."""
        raise SkillError("x" * 9000)

    @skill
    async def talk(self, characters: int) -> str:
        """Say much."""
        return "".join(f"{number:07d} " for number in range(characters // 8))

    @skill
    async def follow(self, call: Call, who: str = "x") -> str:
        """Follow until it is done."""
        await call.update(f"following {who}")
        await self.done.wait()
        return f"{who} is gone"

    @skill
    async def spin(self) -> str:
        """Turn for a while, and answer then."""
        await asyncio.sleep(5)
        return "turned"

    @skill
    async def deaf(self, call: Call) -> str:
        """Go on, whoever wants it to end."""
        await call.update("on my way")
        while not self.done.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(self.done.wait(), 50)
        return "there"

    @skill(on_duplicate="replace")
    async def patrol(self, call: Call, where: str = "hall") -> str:
        """Patrol; takes its time to end."""
        return await self._round("patrol", call, where)

    @skill(on_duplicate="replace", protected=True)
    async def guard(self, call: Call, where: str = "hall") -> str:
        """Guard."""
        return await self._round("guard", call, where)

    @skill(on_duplicate="reject", duplicate_scope="arguments")
    async def watch(self, call: Call, where: str = "hall") -> str:
        """Watch."""
        return await self._round("watch", call, where)

    @skill(on_duplicate="confirm")
    async def sing(self, call: Call, where: str = "hall") -> str:
        """Sing."""
        return await self._round("sing", call, where)

    async def _round(self, name: str, call: Call, where: str) -> str:
        self.log_.append(f"{name} {where} begins")
        try:
            await call.update(f"{name} {where}")
            await self.done.wait()
            return "over"
        finally:
            await asyncio.sleep(0.3)
            self.log_.append(f"{name} {where} ends")


@contextlib.asynccontextmanager
async def robot_stage(
    brain: Brain, *, run_dir: Path | None = None, **config: Any
) -> AsyncIterator[tuple[Stage, Robot]]:
    """A stage with a ``Robot`` whose agent has this brain, and records in ``run_dir``."""
    async with stage(config, run_dir=run_dir) as made:
        robot = Robot(name="robot")
        await made.harness.add(robot)
        made.agent.core.model.adapter = brain
        await until(lambda: "robot" in {view.name for view in made.bridge.broker.directory.modules() if view.skills})
        yield made, robot


async def decide(made: Stage, decision: str, **more: Any) -> Any:
    """Wait for an approval and decide on it, as an operator does; the approval's view before that."""
    pending: list[Any] = []
    async with asyncio.timeout(60):
        while not pending:
            pending = await (await made.harness.call("approvals", caller="operator")).result()
            await asyncio.sleep(0.05)
    call = await made.harness.call("decide", caller="operator", approval=pending[0]["id"], decision=decision, **more)
    await call.result()
    return pending[0]
