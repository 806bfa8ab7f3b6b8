"""Where two instances run under one name, nothing begins that may move both robots; what only senses does."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.errors import SkillUnavailableError
from tests.bridge.calls.driven_robots import Gripper
from tests.bridge.scene import Worker, scene


@pytest.mark.virtual_time
async def test_what_holds_anything_is_not_begun_twice_and_what_senses_is() -> None:
    async with scene() as world:
        for _ in range(2):
            await world.add(Gripper(name="gripper"))
            await asyncio.sleep(1.0)
        await world.add(Worker(name="worker"))
        await asyncio.sleep(3.0)
        for skill, arguments in (("hold_tight", {}), ("follow", {"description": "ann"})):
            with pytest.raises(SkillUnavailableError, match="may move two robots"):
                await world.broker.call(skill, arguments, caller="you")
        await world.broker.call("search", {}, caller="you")
