"""Skills behind decorators of their authors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from dimos_streams.errors import SkillError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill, skills_of
from dimos_streams.testing import ModuleHarness


def when_armed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(self: Gun, *given: Any, **named: Any) -> Any:
        if not self.armed:
            raise SkillError("not armed")
        return await function(self, *given, **named)

    return guarded


class Gun(Module):
    config: ModuleConfig
    armed = False

    @when_armed
    @skill(motion=True)
    async def outside(self, call: Call, times: int = 1) -> str:
        """Fire, ``times`` times."""
        return f"fired {times}"

    @skill(motion=True)
    @when_armed
    async def inside(self, times: int = 1) -> str:
        """Fire, ``times`` times."""
        return f"fired {times}"


class Toy(Gun):
    outside = None  # type: ignore[assignment]


@pytest.mark.virtual_time
@pytest.mark.parametrize("name", ["outside", "inside"])
async def test_a_guard_is_passed_on_whichever_side_of_the_mark_it_stands(name: str) -> None:
    async with ModuleHarness(Gun) as harness:
        refused = await harness.call(name, times=2)
        assert (await refused.closed()).text == "not armed"
        harness.module.armed = True
        assert await (await harness.call(name, times=2)).result() == "fired 2"
    spec = skills_of(Gun)[name]
    assert (spec.policy.motion, spec.description) == (True, "Fire, ``times`` times.")
    assert list(spec.parameters.schema()["properties"]) == ["times"]


def test_a_subclass_may_have_a_skill_no_more() -> None:
    assert list(skills_of(Toy)) == ["inside"]
