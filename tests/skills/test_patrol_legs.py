"""The legs of ``patrol``, against odometry that the test holds."""

from __future__ import annotations

import asyncio
import contextlib
import typing
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.skill import Call
from dimos_streams.skills.moving.obedience import DisobedienceError
from dimos_streams.skills.patrol import Patrol
from dimos_streams.skills.patrol_run import Patrolling
from dimos_streams.testing import ModuleHarness
from tests.skills.detections import Camera, odometry

CONFIG = {"waypoints": [(2.0, 0.0)], "look_around_deg": 0.0, "leg_timeout_s": 3.0}


@dataclass
class Base:
    """A base that is where the test says, whatever it is told."""

    harness: ModuleHarness
    x: float = 0.0

    async def run(self) -> None:
        while True:
            self.harness.feed("odom", odometry(self.x))
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def standing() -> AsyncIterator[Base]:
    async with ModuleHarness(Patrol, CONFIG) as harness:
        base = Base(harness)
        harness.module.spawn(base.run(), name="base")
        harness.module.spawn(Camera(harness).run(), name="camera")
        yield base


@pytest.mark.virtual_time
async def test_the_time_of_a_leg_passes_only_while_nobody_holds_the_robot() -> None:
    async with standing() as base:
        call = await base.harness.call("patrol")
        await asyncio.sleep(1.0)
        base.harness.feed("hold", Hold(utime=clock.utime(), source="agent", seq=1, hold=True, valid_s=60.0))
        await asyncio.sleep(30.0)
        assert len(call.texts("update")) == 1, "on its way"
        base.harness.feed("hold", Hold(utime=clock.utime(), source="agent", seq=2, hold=False, valid_s=60.0))
        await asyncio.sleep(1.5)
        assert len(call.texts("update")) == 1
        await asyncio.sleep(1.0)
        assert call.texts("update")[1:] == [
            "Can't reach way-point 1 of 1, round 1 of 1: not done within 3 s. Going on"
        ]


@pytest.mark.virtual_time
async def test_the_way_home_is_no_way_point_that_was_missed() -> None:
    async with standing() as base:
        call = await base.harness.call("patrol")
        await call.answer()
        base.x = 2.0
        result = await call.result(timeout_s=10.0)
        assert call.texts("update")[-1].startswith("Can't reach where the patrol began: ")
        assert (result["reached"], result["missed"], result["home_m"]) == (1, 0, 2.0)


@pytest.mark.virtual_time
async def test_somebody_who_shows_at_that_moment_hides_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the robot would go after them."""
    async with ModuleHarness(Patrol, CONFIG) as harness:
        module, call = harness.module, typing.cast("Call", None)
        assert isinstance(module, Patrol)
        patrolling = Patrolling(module, call, ["person"], 5.0)

        async def contradict() -> Any:
            raise DisobedienceError("the robot turns against its commands")

        async def appear() -> object:
            return object()

        monkeypatch.setattr(patrolling._guard, "next", appear)
        with pytest.raises(DisobedienceError):
            await patrolling._until_somebody_appears(contradict())


@pytest.mark.virtual_time
async def test_a_patrol_that_is_over_reads_no_odometry_any_more() -> None:
    async with standing() as base:
        await (await base.harness.call("patrol")).closed()
        module = base.harness.module
        assert isinstance(module, Patrol)
        assert module.odom._readers == []
