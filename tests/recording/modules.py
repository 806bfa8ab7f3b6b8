"""Modules that tests put in the place of stock ones."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, ClassVar

from dimos_streams.errors import SkillError
from dimos_streams.live_settings import Live
from dimos_streams.module import LOSS_BOUND_S, Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.skills.follow_person import FollowPerson


class Breaks(FollowPerson):
    """Fails while it runs."""

    async def run(self) -> None:
        await asyncio.sleep(1)
        raise RuntimeError("broken on purpose")


class Renames(FollowPerson):
    """Has its skill under another name."""

    follow_person: ClassVar[Any] = None

    @skill
    async def follow_persons(self, call: Call, description: str) -> str:
        """Follow."""
        return description


class Raises(FollowPerson):
    """Has a skill that can't begin any more."""

    @skill(resources={"base"}, tags={"motion"}, on_duplicate="replace", motion=True)
    async def follow_person(  # type: ignore[override]
        self, call: Call, description: str
    ) -> str:
        """Follow."""
        raise SkillError("the legs are off")


class PickerConfig(ModuleConfig):
    gain: Annotated[float, Live] = 0.5
    near: frozenset[str] = frozenset(map(str, range(20)))
    token: str = "a-secret-of-the-class"


class ChangedPickerConfig(PickerConfig):
    """The same with another default."""

    gain: Annotated[float, Live] = 0.6


class Picker(Module):
    """Has a setting that operators change."""

    config: PickerConfig

    @skill
    async def pick(self, call: Call) -> float:
        """Tell with which gain it picks."""
        return self.config.gain


class Asks(Module):
    """Has a skill that another one is a part of."""

    config: ModuleConfig

    @skill
    async def ask(self, call: Call) -> float:
        """Have somebody pick."""
        return float(await call.skills.run("pick"))


class Fetches(Module):
    """Has a motion that another skill is a part of."""

    @skill(motion=True)
    async def fetch(self, call: Call) -> str:
        """Have somebody think it over."""
        return str(await call.skills.run("ponder"))


class Ponders(Module):
    """Has a skill that takes longer than the bridge may be silent about a motion."""

    @skill
    async def ponder(self, call: Call) -> str:
        """Think it over."""
        await call.update("well")
        await asyncio.sleep(2 * LOSS_BOUND_S)
        return "yes"
