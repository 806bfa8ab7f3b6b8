"""Who asks by one idempotency key while the call still waits to begin gets that call, whoever else gives up."""

from __future__ import annotations

import asyncio
import tracemalloc
from unittest.mock import AsyncMock

import pytest

from dimos_streams.bridge.calls.idempotency import IdempotencyKeys
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.names import tool_name
from dimos_streams.errors import KeyUsedError
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Scene, answered, closed, scene

pytestmark = pytest.mark.virtual_time


async def waiting_for_the_base(world: Scene, *values: int) -> tuple[str, list[asyncio.Task[str]]]:
    """A call that holds the base, and one for each value that waits for that by the same key."""
    broker = world.broker
    await answered(broker, holder := await broker.call("follow", {"description": "ann"}, caller="you"))
    tasks = [
        asyncio.create_task(
            broker.call("at_once", {"value": value}, caller="you", idempotency_key="k1", lease_wait_s=60.0)
        )
        for value in values
    ]
    await asyncio.sleep(1.0)
    return holder, tasks


async def test_one_of_those_who_wait_gives_up_and_the_others_have_their_call() -> None:
    async with scene() as world:
        holder, (first, second, third) = await waiting_for_the_base(world, 1, 1, 1)
        second.cancel()
        await asyncio.wait([second])
        await world.broker.cancel(holder, "enough")
        assert await first == await third
        assert (await closed(world.broker, await first)).outcome is Outcome.COMPLETED


async def test_the_key_of_a_call_that_waits_is_used() -> None:
    async with scene() as world:
        _, (first, second) = await waiting_for_the_base(world, 1, 2)
        with pytest.raises(KeyUsedError, match=r"\(requested\), which has other arguments") as used:
            await second
        assert used.value.state == "requested"
        first.cancel()
        await asyncio.wait([first])


async def test_a_key_keeps_little_of_the_arguments_of_its_call() -> None:
    keys = IdempotencyKeys(lambda call_id: None)
    tracemalloc.start()
    for number in range(100):
        arguments = {"text": f"{number}{'x' * 35_000}"}
        keys.restore(CallState(str(number), "say", "", caller="you", arguments=arguments, key=str(number)))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert keys.call_of("you", "0")
    assert taken < 500_000


async def test_a_request_by_a_tool_s_name_gets_its_call_again_after_a_restart() -> None:
    skill = "warehouse_north_hall_7_count_what_lies_on_the_shelves_of_this_aisle"
    keys = IdempotencyKeys(lambda call_id: None)
    keys.restore(CallState("c1", skill, "", caller="you", key="k1"))
    for name in (skill, tool_name(skill), f"/{skill}"):
        asked = CallState("c2", name, "", caller="you", key="k1")
        assert await keys.begin(asked, AsyncMock()) == "c1"
    other = CallState("c2", skill.replace("count", "sort"), "", caller="you", key="k1")
    with pytest.raises(KeyUsedError, match="is of another skill"):
        await keys.begin(other, AsyncMock())


async def test_a_skill_that_is_called_like_a_shortened_name_has_its_call_again_after_a_restart() -> None:
    skill = tool_name("warehouse_north_hall_7_count_what_lies_on_the_shelves_of_this_aisle")
    assert tool_name(skill) != skill
    keys = IdempotencyKeys(lambda call_id: None)
    keys.restore(CallState("c1", skill, "", caller="you", key="k1"))
    for name in (skill, tool_name(skill)):
        assert await keys.begin(CallState("c2", name, "", caller="you", key="k1"), AsyncMock()) == "c1"
    with pytest.raises(KeyUsedError, match="is of another skill"):
        await keys.begin(CallState("c2", "count", "", caller="you", key="k1"), AsyncMock())
