"""A call whose beginning was cut short may begin all the same: its mission goes on until then, and it is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.errors import NoAnswerError
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until


def slow_world() -> LineWorld:
    """A world in which a call is on its way to the bridge for a second."""
    world = LineWorld()
    world.bridge.latency_s = lambda: 1.0
    return world


async def cut_while_a_call_begins(agent: AgentInMemory) -> None:
    """Have the agent asked for a call, and its turn cut by urgent input while the call is on its way."""
    await agent.say("follow")
    await asyncio.sleep(0.5)
    assert not agent.core.calls.known.open
    urgent = agent.core.missions.begin("urgent", "look left")
    await agent.core.work.hear(OperatorInput("look left", (urgent,), now=True))
    await asyncio.sleep(0.1)


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_nothing_of_a_mission_comes_after_its_end() -> None:
    world = slow_world()
    async with world.agent(asks(("follow", {})), says("left"), says("it was ended")) as agent:
        await cut_while_a_call_begins(agent)
        await asyncio.sleep(10)
        assert world.log == ["follow ended"]
        of_mission = [event.kind for event in agent.core.events.after(0) if "m0" in event.missions]
        assert "update" in of_mission
        assert of_mission[-1] == "done"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_that_never_begins_does_not_keep_its_mission_going() -> None:
    world = slow_world()
    world.bridge.refuse = lambda skill: True
    async with world.agent(asks(("follow", {})), says("left")) as agent:
        await cut_while_a_call_begins(agent)
        await asyncio.sleep(10)
        (mission,) = [
            event for event in agent.core.events.after(0) if event.kind == "done" and "m0" in event.missions
        ]
        assert mission.data["reason"] == "interrupted"


@pytest.mark.feature("B5", "B8")
@pytest.mark.virtual_time
@pytest.mark.parametrize("order", ["none", "pause", "stop"])
async def test_a_call_is_not_asked_for_again_after_an_order_that_speaks_against_it(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    world = LineWorld()
    begin, asked = world.bridge.call, list[str]()

    async def losing(skill: str, arguments: Mapping[str, Any], **options: Any) -> str:
        asked.append(skill)
        if len(asked) == 1:
            raise NoAnswerError("the bridge was killed", may_have_arrived=True)
        return await begin(skill, arguments, **options)

    monkeypatch.setattr(world.bridge, "call", losing)
    async with world.agent(asks(("move", {"by": 3})), says("well")) as agent:
        mission = await agent.say("go")
        await until(lambda: asked)
        if order == "pause":
            agent.core.control.pause("wait")
        elif order == "stop":
            agent.core.oversight.robot_stops.gates_changed.notify()
        await asyncio.sleep(5)
        assert asked == ["move"] * (2 if order == "none" else 1)
        agent.core.control.resume()
        await agent.over(mission)
        assert world.log == ["move 3"] * (order == "none")
        (result,) = agent.data("result")
        assert ("not known whether the call has begun" in result["text"]) is (order != "none")


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_agent_that_stops_waits_for_no_call_in_doubt() -> None:
    world = slow_world()
    world.bridge.refuse = lambda skill: True
    async with world.agent(asks(("follow", {})), says("left")) as agent:
        await cut_while_a_call_begins(agent)
        number = len(agent.core.events.after(0))
    await asyncio.sleep(10)
    assert len(agent.core.events.after(0)) == number


@pytest.mark.feature("B6")
@pytest.mark.parametrize("how", ["now", "abort"])
@pytest.mark.virtual_time
async def test_a_call_that_begins_too_late_is_recorded_and_can_be_taken_back(how: str) -> None:
    world = slow_world()
    async with world.agent(asks(("move", {"by": 1})), says("left"), says("it was ended")) as agent:
        if how == "now":
            await cut_while_a_call_begins(agent)
        else:
            await agent.say("move")
            await asyncio.sleep(0.5)
            await agent.core.loop.abort()
        await asyncio.sleep(10)
        (call,) = world.bridge.calls_.values()
        assert call.reason == "it was begun too late"
        (opened,) = agent.data("call_open")
        assert (opened["call_id"], opened["tool_call_id"]) == (call.id, "t0")
        (undone,) = await agent.core.loop.undo()
        assert undone.call_id == call.id


class DoubtfulLine(Line):
    """A link on which a move by 1 is lost, and nobody knows on which way."""

    async def call(self, skill: str, arguments: Mapping[str, Any], **options: Any) -> str:
        if arguments == {"by": 1}:
            raise NoAnswerError("the bridge does not answer", may_have_arrived=True)
        return await super().call(skill, arguments, **options)


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_motion_that_may_have_begun_was_one_of_the_free_ones() -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(("move", {"by": 1})), asks(("move", {"by": 2})), says("no")))
    config = {"plan": {"motions": 1}}
    async with AgentInMemory(world.bridge, model, config, line=DoubtfulLine(world.bridge)) as agent:
        await agent.say("go")
        await until(lambda: len(agent.data("result")) == 2)
        first, second = (result["text"] for result in agent.data("result"))
        assert "it is not known whether the call has begun" in first
        assert "move(by=2) needs an approved plan" in second
