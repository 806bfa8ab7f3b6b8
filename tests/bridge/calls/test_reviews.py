"""What a skill asks for on an agent's behalf begins while that agent permits it, and as it permits it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.review import BEGUN, Permission
from tests.bridge.calls.families import Composer
from tests.bridge.calls.test_authority import Legs
from tests.bridge.scene import Scene, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("F6")]


class Judge(Module):
    """An agent whose reviews do as they are told."""

    judge: Callable[[Call, dict[str, Any]], Awaitable[None]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ended: list[str] = []

    @skill(audience="bridge")
    async def review_call(self, call: Call, call_id: str, parent: str, skill: str, arguments: dict[str, Any]) -> None:
        """Look at a call, until it has begun or never will."""
        try:
            await self.judge(call, arguments)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append(str(call.cancel_reason))
            raise


async def permit(call: Call, arguments: dict[str, Any]) -> None:
    """Have a call begin with these arguments."""
    await call.update("it may begin", **Permission(arguments=arguments).data())


async def asked_for(world: Scene, skill: str, **arguments: Any) -> CallView:
    """A call that a skill asks for, which an agent has called, at its end."""
    given = {"skill": skill, "arguments": arguments}
    parent = await world.broker.call("use", given, caller="agent", idempotency_key="agent/1")
    await until(lambda: world.broker.ledger.calls.get(f"{parent}~1"))
    return await closed(world.broker, f"{parent}~1")


async def with_judge(world: Scene, judge: Callable[[Call, dict[str, Any]], Awaitable[None]]) -> Judge:
    agent = Judge(name="agent")
    agent.judge = judge
    await world.add(agent)
    await world.add(Composer(name="composer"), Legs(name="legs"))
    for skill_name in ("review_call", "use", "turn"):
        await world.offered(skill_name)
    return agent


async def test_a_review_may_take_its_time_and_ends_when_the_call_has_begun() -> None:
    async def permit_late(call: Call, arguments: dict[str, Any]) -> None:
        await asyncio.sleep(5.0)
        await permit(call, arguments)

    async with scene() as world:
        agent = await with_judge(world, permit_late)
        assert (await asked_for(world, "at_once", value=1)).result == 1
        await until(lambda: agent.ended == [BEGUN])


async def test_a_call_begins_with_the_arguments_that_were_permitted() -> None:
    async with scene() as world:
        await with_judge(world, lambda call, arguments: permit(call, {"value": 2}))
        assert (await asked_for(world, "at_once", value=1)).result == 2


async def test_what_is_not_permitted_any_more_when_its_turn_comes_does_not_begin() -> None:
    async def take_back(call: Call, arguments: dict[str, Any]) -> None:
        await permit(call, arguments)
        await asyncio.sleep(0.5)
        await call.update("not now")
        await asyncio.sleep(5.0)
        raise SkillError("not any more")

    async with scene() as world:
        await with_judge(world, take_back)
        running = await world.broker.call("turn", {}, caller="agent", idempotency_key="agent/0")
        await asyncio.sleep(0.5)
        refused = await asked_for(world, "turn")
        assert (await world.broker.view(running)).outcome is Outcome.CANCELLED
        assert (refused.outcome, refused.text) == (Outcome.REJECTED, "not any more")


async def test_for_an_agent_that_is_gone_nothing_begins_and_nobody_waits() -> None:
    async with scene() as world:
        await with_judge(world, permit)
        world.processes[-2].bus.partitioned = True
        await until(lambda: not (agent := world.broker.directory.module("agent")) or not agent.alive)
        began = clock.monotonic()
        refused = await asked_for(world, "at_once", value=1)
        assert refused.outcome is Outcome.REJECTED
        assert refused.text.startswith("agent 'agent', for whom 'at_once' was to begin, is gone: gone")
        assert clock.monotonic() - began < 1.0


async def test_a_review_ends_when_who_asks_was_asked_to_end() -> None:
    async def think(call: Call, arguments: dict[str, Any]) -> None:
        await asyncio.sleep(60.0)

    async with scene() as world:
        agent = await with_judge(world, think)
        given = {"skill": "at_once", "arguments": {"value": 1}}
        parent = await world.broker.call("deaf", given, caller="agent", idempotency_key="agent/1")
        await until(lambda: world.broker.ledger.waiting)
        await world.broker.cancel(parent, "enough")
        await until(lambda: agent.ended, 1.0)
        assert agent.ended == [f"call {parent!r}, which asks for 'at_once', was asked to end: enough"]


async def test_a_review_that_an_earlier_bridge_began_is_ended_by_the_next_one() -> None:
    async def think(call: Call, arguments: dict[str, Any]) -> None:
        await call.update("looking")

    async with scene() as world:
        agent = await with_judge(world, think)
        asked = {"call_id": "c1~1", "parent": "c1", "skill": "at_once", "arguments": {"value": 1}}
        left = CallState(call_id="r1", skill="review_call", module="agent", caller="bridge", arguments=asked)
        left.request = Repeat(clock.monotonic())
        world.broker.ledger.begin(left)
        await until(lambda: agent.ended)
        assert agent.ended == ["the bridge was started again"]
