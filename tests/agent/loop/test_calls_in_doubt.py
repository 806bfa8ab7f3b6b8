"""A call whose beginning was cut short may begin all the same: its mission goes on until then, and it is recorded."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.missions.message_queue import OperatorInput
from tests.agent.loop.rig import Rig, asks, says
from tests.agent.loop.skills import LineWorld


def slow_world() -> LineWorld:
    """A world in which a call is on its way to the bridge for a second."""
    world = LineWorld()
    world.bridge.latency_s = lambda: 1.0
    return world


async def cut_while_a_call_begins(rig: Rig) -> None:
    """Have the agent asked for a call, and its turn cut by urgent input while the call is on its way."""
    await rig.say("follow")
    await asyncio.sleep(0.5)
    assert not rig.core.calls.known.open
    urgent = rig.core.missions.begin("urgent", "look left")
    await rig.core.input_handler.hear(OperatorInput("look left", (urgent,), now=True))
    await asyncio.sleep(0.1)


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_nothing_of_a_mission_comes_after_its_end() -> None:
    world = slow_world()
    async with world.rig(asks(("follow", {})), says("left"), says("it was ended")) as rig:
        await cut_while_a_call_begins(rig)
        await asyncio.sleep(10)
        assert world.log == ["follow ended"]
        of_mission = [event.kind for event in rig.core.events.after(0) if "m0" in event.missions]
        assert "update" in of_mission
        assert of_mission[-1] == "done"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_that_never_begins_does_not_keep_its_mission_going() -> None:
    world = slow_world()
    world.bridge.refuse = lambda skill: True
    async with world.rig(asks(("follow", {})), says("left")) as rig:
        await cut_while_a_call_begins(rig)
        await asyncio.sleep(10)
        (mission,) = [event for event in rig.core.events.after(0) if event.kind == "done" and "m0" in event.missions]
        assert mission.data["reason"] == "interrupted"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_agent_that_stops_waits_for_no_call_in_doubt() -> None:
    world = slow_world()
    world.bridge.refuse = lambda skill: True
    async with world.rig(asks(("follow", {})), says("left")) as rig:
        await cut_while_a_call_begins(rig)
        number = len(rig.core.events.after(0))
    await asyncio.sleep(10)
    assert len(rig.core.events.after(0)) == number


@pytest.mark.feature("B6")
@pytest.mark.parametrize("how", ["now", "abort"])
@pytest.mark.virtual_time
async def test_a_call_that_begins_too_late_is_recorded_and_can_be_taken_back(how: str) -> None:
    world = slow_world()
    async with world.rig(asks(("move", {"by": 1})), says("left"), says("it was ended")) as rig:
        if how == "now":
            await cut_while_a_call_begins(rig)
        else:
            await rig.say("move")
            await asyncio.sleep(0.5)
            await rig.core.loop.abort()
        await asyncio.sleep(10)
        (call,) = world.bridge.calls_.values()
        assert call.reason == "it was begun too late"
        (opened,) = rig.data("call_open")
        assert (opened["call_id"], opened["tool_call_id"]) == (call.id, "t0")
        (undone,) = await rig.core.loop.undo()
        assert undone.call_id == call.id
