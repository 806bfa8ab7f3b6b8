"""Skills in a process of their own, for tests of an agent in another."""

from __future__ import annotations

import asyncio
from typing import Any

from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill


class Line(Module):
    """A robot on a line. ``entries`` are what it did, in order."""

    async def start(self) -> None:
        self.x = 0.0
        self.done: list[str] = []

    @skill(motion=True, undo="move_back")
    async def move(self, by: float) -> str:
        """Move."""
        self.done.append(f"move {by:g}")
        await asyncio.sleep(0.1)
        self.x += by
        return f"at {self.x:g}"

    @skill(audience="operator")
    async def move_back(self, arguments: dict[str, Any], result: Any = None) -> str:
        """Take a move back."""
        self.done.append(f"back {arguments['by']:g}")
        self.x -= arguments["by"]
        return f"back at {self.x:g}"

    @skill(concurrent=True)
    async def look(self) -> str:
        """Look."""
        seen = self.x
        await asyncio.sleep(0.1)
        return f"seen from {seen:g}"

    @skill(approval="ask")
    async def jump(self, height_m: float) -> str:
        """Jump."""
        self.done.append(f"jump {height_m:g}")
        return f"jumped {height_m:g} m"

    @skill(on_duplicate="replace")
    async def follow(self, call: Call, whom: str) -> str:
        """Follow somebody until that is cancelled."""
        await call.update(f"following {whom}")
        try:
            await asyncio.Event().wait()
        finally:
            self.done.append(f"let {whom} go")
        return "never"

    @skill
    async def relay(self, call: Call, skill: str, arguments: dict[str, Any]) -> str:
        """Begin another skill."""
        return await call.skills.start(skill, arguments)

    @skill
    async def watch(self, call: Call, count: int, pause_s: float = 0.05) -> str:
        """Watch, and report what happens."""
        for number in range(count):
            await call.update(f"saw <{number}>")
            await asyncio.sleep(pause_s)
        return "nothing more to see"

    @skill
    async def read(self, characters: int) -> str:
        """Read something long."""
        return "".join(f"{number:09d} " for number in range(characters // 10))

    @skill
    async def fail(self, how: str) -> None:
        """Fail."""
        if how == "politely":
            raise SkillError("the door is locked")
        raise ZeroDivisionError("secret detail")

    @skill(audience="operator")
    async def entries(self) -> list[str]:
        """Tell what was done, and forget it."""
        done, self.done = self.done, []
        return done
