"""Who stands at the beginning of a chain decides what may begin, also where the bridge did not begin the chain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.undos import takes_back
from dimos_streams.common.names import prefix_of
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module, RunContext
from dimos_streams.operator.agents import public_name
from dimos_streams.skill import skill
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.calls.families import Composer
from tests.bridge.calls.test_names import Reviewer
from tests.bridge.scene import Scene, answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("F6")]


class Legs(Module):
    """Legs that can go back where they came from, and turn round slowly."""

    @skill(undo="retreat")
    async def advance(self, metres: int) -> None:
        """Go there."""

    @skill(audience="operator")
    async def retreat(self, arguments: dict[str, Any], result: Any = None) -> None:
        """Go back."""

    @skill(audience="operator")
    async def unlock(self, arguments: dict[str, Any]) -> None:
        """Let anybody carry the legs away."""

    @skill(on_duplicate="replace")
    async def turn(self) -> None:
        """Turn round, and take a while to stop."""
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1.0)


async def with_agent(world: Scene, *modules: Module) -> None:
    await world.add(Reviewer(name="agent"), *modules)
    await world.offered("review_call")
    await until(lambda: all(world.broker.directory.module(module.name) for module in modules))


@pytest.mark.parametrize(
    ("order", "metres", "is_own"),
    [("retreat", 1, True), ("retreat", 2, False), ("retreat", 3, False), ("unlock", 1, False)],
)
async def test_an_agent_calls_for_an_operator_only_what_undoes_its_own_call(
    order: str, metres: int, is_own: bool
) -> None:
    async with scene() as world:
        await with_agent(world, Legs(name="legs"))
        for caller, key, distance in (("agent", "agent/1", 1), ("somebody", None, 3)):
            arguments = {"metres": distance}
            await closed(
                world.broker, await world.broker.call("advance", arguments, caller=caller, idempotency_key=key)
            )
        asked = world.broker.call(order, {"arguments": {"metres": metres}}, caller="agent", idempotency_key="agent/2")
        if is_own:
            assert (await closed(world.broker, await asked)).outcome is Outcome.COMPLETED
        else:
            with pytest.raises(CallRejectedError, match="may call one only to take back a call of its own"):
                await asked


@pytest.mark.parametrize("key", [None, "1", "agents/1", "my/agent/1"])
async def test_a_program_by_an_agents_name_has_no_key_of_its(key: str | None) -> None:
    async with scene() as world:
        await with_agent(world)
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await world.broker.call("at_once", {"value": 1}, caller="agent", idempotency_key=key)


async def test_what_a_call_asks_for_that_an_agent_began_without_the_bridge_is_reviewed_by_it() -> None:
    async with scene() as world:
        await with_agent(world, Composer(name="composer"))
        asked = SkillCall(
            call_id="c1",
            module="composer",
            skill="use",
            caller="agent",
            arguments_json='{"skill": "at_once", "arguments": {"value": 1}}',
        )
        world.inner.publish(CALLS, encode(asked))
        await until(lambda: world.broker.ledger.calls.get("c1~1"))
        child = await closed(world.broker, "c1~1")
        assert child.outcome is Outcome.REJECTED
        assert "agent 'agent', for whom 'at_once' was to begin, does not look at it any more" in child.text


async def test_what_comes_before_the_call_that_asks_for_it_waits_for_that_and_no_other_does() -> None:
    async with scene() as world:
        await world.offered("at_once")
        began = clock.monotonic()
        world.inner.publish(CALLS, encode(SkillCall(call_id="c2", skill="at_once")))
        await until(lambda: world.broker.ledger.calls.get("c2"))
        assert "nobody asks for 'at_once'" in (await closed(world.broker, "c2")).text
        assert clock.monotonic() - began < 0.1
        child = SkillCall(call_id="c1~1", skill="at_once", parent="c1", arguments_json='{"value": 1}')
        world.inner.publish(CALLS, encode(child))
        await asyncio.sleep(0.3)
        asking = SkillCall(call_id="c1", module="worker", skill="search", caller="me")
        world.inner.publish(CALLS, encode(asking))
        await until(lambda: world.broker.ledger.calls.get("c1~1"))
        view = await closed(world.broker, "c1~1")
        assert (view.outcome, view.caller) == (Outcome.COMPLETED, "me"), view.text


async def test_what_waits_for_a_duplicate_to_end_does_not_begin_once_nobody_asks_for_it() -> None:
    async with scene() as world:
        await with_agent(world, Legs(name="legs"))
        await answered(world.broker, parent := await world.broker.call("follow", {"description": "ann"}, caller="me"))
        await world.broker.call("turn", {}, caller="me")
        await asyncio.sleep(0.5)
        world.inner.publish(CALLS, encode(SkillCall(call_id=f"{parent}~1", skill="turn", parent=parent)))
        await until(lambda: world.broker.ledger.waiting)
        await world.broker.cancel(parent, "enough")
        await until(lambda: world.broker.ledger.calls.get(f"{parent}~1"))
        refused = await closed(world.broker, f"{parent}~1")
        assert (refused.outcome, "which asks for 'turn', has ended" in refused.text) == (Outcome.REJECTED, True)


@pytest.mark.parametrize("agent", ["agent", "robot1/agent"])
async def test_nobody_begins_a_motion_while_an_agent_takes_calls_back(agent: str) -> None:
    async with scene() as world:
        await world.add(Reviewer(name=agent, context=RunContext(namespace=prefix_of(agent))))
        await world.offered(public_name(agent, "review_call"))
        undo = CallState(call_id="u1", skill=public_name(agent, "undo"), module=agent, caller="cli")
        world.broker.ledger.begin(undo)
        with pytest.raises(CallRejectedError, match="takes calls back") as refused:
            await world.broker.call("follow", {"description": "ann"}, caller="you")
        assert refused.value.holder == "u1"
        await world.broker.call("search", {}, caller="you")


@pytest.mark.parametrize("agent", ["agent", "robot1/agent"])
@pytest.mark.parametrize(
    ("order", "arguments", "does"),
    [("undo", {}, True), ("abort", {"rollback": True}, True), ("abort", {}, False), ("my_undo", {}, False)],
)
def test_what_takes_calls_back(order: str, arguments: dict[str, Any], does: bool, agent: str) -> None:
    call = CallState(call_id="u", skill=public_name(agent, order), module=agent, caller="cli", arguments=arguments)
    assert takes_back(call) is does
