"""Modules that hang on demand."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from dimos_streams.module import Module
from dimos_streams.skill import Call, skill


class Sleeper(Module):
    """Has a skill that stops its process's loop, as a skill's author may do by mistake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cancelled: list[str] = []

    @skill(resources={"base"})
    async def block(self, call: Call, pipe: str) -> None:
        """Block the loop until somebody opens a named pipe for writing, then go on as if nothing had been."""
        await call.update("blocks")
        os.close(os.open(pipe, os.O_RDONLY))
        await call.update("goes on")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.append(call.id)
            raise

    @skill
    async def cancelled_calls(self) -> list[str]:
        """The calls that were cancelled."""
        return self.cancelled


class Mover(Module):
    """Needs what the sleeper holds."""

    @skill(resources={"base"})
    async def move(self) -> None:
        """Do nothing."""


class Errands(Module):
    """Runs skills of others."""

    @skill
    async def errand(self, call: Call, x: float, y: float) -> dict[str, Any]:
        """Have the robot driven somewhere, by a skill that another one runs."""
        await call.update("on the way")
        report: dict[str, Any] = await call.skills.run("drive_there", x=x, y=y)
        return report

    @skill(resources={"base"}, motion=True)
    async def drive_there(self, call: Call, x: float, y: float) -> dict[str, Any]:
        """Have the robot driven somewhere, and hold it meanwhile."""
        report: dict[str, Any] = await call.skills.run("go_to", x=x, y=y)
        return report
