"""A robot without a body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dimos_streams.errors import SkillError
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out


class Lookout(Module):
    """Looks for rovers."""

    position: In[String]
    weather: In[String] = In(required=False)

    @classmethod
    def longest_gaps(cls, config: ModuleConfig) -> Mapping[str, float]:
        return {"position": 0.5}


class RoverConfig(ModuleConfig):
    """Settings of the rover."""

    speed_m_s: float = 2.0
    fail_at_start: str = ""


class Rover(Module):
    """Says where it is, ten times a second."""

    config: RoverConfig
    position: Out[String]

    async def start(self) -> None:
        if self.config.fail_at_start:
            raise RuntimeError(self.config.fail_at_start)

    async def run(self) -> None:
        while True:
            self.position.publish(String(data="here"))
            await asyncio.sleep(0.1)

    @skill
    async def move(self, call: Call, distance_m: float, how: Literal["fast", "slow"] = "fast") -> str:
        """Move by a distance."""
        await call.update("Moving")
        call.progress("half of it", left_m=distance_m / 2)
        await asyncio.sleep(distance_m / self.config.speed_m_s)
        return f"Moved {distance_m:g} m {how}"

    @skill
    async def wander(self, call: Call, name: str = "") -> None:
        """Wander about for ever."""
        await call.update(f"Wandering {name}".strip())
        while True:
            call.progress("wandering")
            await asyncio.sleep(0.05)

    @skill(resources=("arm",))
    async def lift(
        self, call: Call, mass_kg: Annotated[float, Field(gt=0, description="With its box.")] = 1.0
    ) -> None:
        """Lift something, and hold it up for ever.

        It is not put down.
        """
        await call.update("Lifting", mass_kg=mass_kg, at=[1 / 3, 2 / 3], box={"name": "a\u2028b"})
        await asyncio.Event().wait()

    @skill
    async def stumble(self) -> None:
        """Fail."""
        raise SkillError("the wheel is off")

    @skill
    async def mumble(self) -> str:
        """Forget to return what is promised."""
        return None  # type: ignore[return-value]

    @skill
    async def mutter(self, call: Call) -> None:
        """Forget to wait."""
        call.update("Never said")  # type: ignore[unused-coroutine]

    @skill(motion=True, approval="ask")
    async def trip(self) -> None:
        """Have a bug."""
        raise ZeroDivisionError("no wheels")
