"""After a skill that stops, nothing moves that was asked for before and waited for what it has ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.errors import CallRejectedError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Scene, answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("A11")]
ARGUMENTS: dict[str, dict[str, Any]] = {"at_once": {"value": 1}, "follow": {"description": "ann"}}


class LegsConfig(ModuleConfig):
    """Nothing to set."""


class Legs(Module):
    """Legs that walk until they are told to halt."""

    config: LegsConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.walking: list[str] = []

    @skill(resources={"base"}, on_duplicate="allow")
    async def walk(self, call: Call) -> None:
        """Walk on and on."""
        self.walking.append(call.id)
        await call.update("walking")
        await asyncio.Event().wait()

    @skill(tags={"safe", "stop"})
    async def halt(self, call: Call) -> None:
        """Halt."""
        await self.end(call)

    @skill
    async def make_room(self, call: Call) -> None:
        """End what walks, for whoever waits."""
        await self.end(call)

    @skill(tags={"stop"})
    async def back_off(self, call: Call) -> None:
        """Halt, and step aside."""
        await self.end(call)
        await call.skills.run("at_once", {"value": 1})

    async def end(self, call: Call) -> None:
        for call_id in self.walking:
            await call.skills.cancel(call_id, "enough")


class Tour(Module):
    """Walks by way of others, so that what holds the base is the legs' call as well as its own."""

    config: LegsConfig

    @skill(resources={"base"})
    async def tour(self, call: Call) -> None:
        """Go round."""
        await call.update("touring")
        await call.skills.run("walk", {})

    @skill(tags={"stop"})
    async def stop_tour(self) -> None:
        """End the tour, in a moment."""


async def waiting_for(world: Scene, holder: str, waits: str) -> tuple[str, asyncio.Task[str]]:
    """A call that holds the base, and one that waits for it."""
    broker = world.broker
    await world.add(Legs(name="legs"), Tour(name="tour"))
    await world.offered("tour")
    call_id = await broker.call(holder, ARGUMENTS.get(holder, {}), caller="somebody")
    await answered(broker, call_id)
    arguments = ARGUMENTS.get(waits, {})
    waiting = asyncio.create_task(broker.call(waits, arguments, caller="cli", lease_wait_s=60.0))
    await until(lambda: bool(broker.ledger.waiting))
    return call_id, waiting


@pytest.mark.parametrize(
    ("holder", "waits", "stop"),
    [
        ("walk", "walk", "halt"),
        ("walk", "at_once", "halt"),
        ("follow", "walk", "halt"),
        ("tour", "at_once", "halt"),
        ("tour", "at_once", "stop_tour"),
    ],
)
async def test_what_waits_does_not_begin_after_a_stop(holder: str, waits: str, stop: str) -> None:
    async with scene() as world:
        broker = world.broker
        holding, waiting = await waiting_for(world, holder, waits)
        await closed(broker, await broker.call(stop, {}, caller="mcp/somebody"))
        await broker.cancel(holding, "enough")
        with pytest.raises(CallRejectedError, match="motions were ended since it was asked for"):
            await waiting
        after = await broker.call("at_once", ARGUMENTS["at_once"], caller="cli", lease_wait_s=60.0)
        assert (await closed(broker, after)).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("stop", ["make_room", "stop_tour"])
async def test_the_end_of_what_holds_lets_others_begin_that_no_stop_was_about(stop: str) -> None:
    async with scene() as world:
        walking, waiting = await waiting_for(world, "walk", "at_once")
        await closed(world.broker, await world.broker.call(stop, {}, caller="agent"))
        await world.broker.cancel(walking, "enough")
        assert (await closed(world.broker, await waiting)).outcome is Outcome.COMPLETED


async def test_what_a_stop_itself_moves_is_not_kept_from_beginning() -> None:
    async with scene() as world:
        await world.add(Legs(name="legs"))
        await world.offered("back_off")
        stop = await world.broker.call("back_off", {}, caller="agent")
        assert (await closed(world.broker, stop)).outcome is Outcome.COMPLETED
