"""Turns that are of several missions, or of none: what ends one mission is no end of another."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.models.protocol import STALE, ModelRequest, UserMessage
from dimos_streams.tool_stream.event import Outcome
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeCall
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

FOLLOW, HANG = "follow Ann", "wait for Bob"


def news(request: ModelRequest) -> list[str]:
    """What has come since the model's last answer: the operator's words, and the skills that have said something."""
    found: list[str] = []
    for message in reversed(request.messages):
        if not isinstance(message, UserMessage):
            break
        found += said_by(message) or [message.text]
    return found


def said_by(message: object) -> list[str]:
    """The skill whose update a message is, if it is one."""
    return [message.event.skill] if isinstance(message, UserMessage) and message.event is not None else []


def call_of(agent: AgentInMemory, skill: str) -> FakeCall:
    (call,) = [call for call in agent.bridge.calls_.values() if call.skill == skill]
    return call


def answer(request: ModelRequest) -> Answer:
    """Begin what the operator says, and look whenever the one who is followed is reported."""
    new = news(request)
    hangs = "hang" in (skill for message in request.messages for skill in said_by(message))
    if HANG in new or (request.messages[-1].text == STALE and not hangs):
        return asks(("hang", {}))
    if FOLLOW in new:
        return asks(("follow", {}))
    return asks(("look", {"for_s": 0.01 * len(request.messages)})) if "follow" in new else says("ok")


@pytest.mark.feature("D2")
@pytest.mark.parametrize("reason", ["max_tokens", "max_actions"])
@pytest.mark.virtual_time
async def test_a_mission_that_has_used_all_it_may_ends_no_other_one_in_its_turn(reason: str) -> None:
    limits = {"max_tokens": 60} if reason == "max_tokens" else {"actions": 2, "actions_per_hour": 0.01}
    slow, world = [0.0], LineWorld()
    async with world.with_model(FunctionModel(answer, lambda: slow[0]), answer_timeout_s=1.0, limits=limits) as agent:
        follows = await agent.say(FOLLOW)
        await until(lambda: world.bridge.calls_)
        waits = await agent.say(HANG) if reason == "max_actions" else None
        await until(lambda: len(world.bridge.calls_) == (1 if waits is None else 2))
        for update in ("1", "2"):
            await asyncio.sleep(5)
            slow[0] = 1.0
            call_of(agent, "follow").send("update", update)
        await asyncio.sleep(0.5)  # a turn of the one is under way: the next one is of both
        call_of(agent, "follow").send("update", "3")
        if waits is None:
            waits = await agent.say(HANG)
        else:
            call_of(agent, "hang").send("update", "still here")
        await agent.over(follows)
        assert follows.reason == reason
        await until(lambda: any(call.skill == "hang" for call in world.bridge.calls_.values()))
        assert (waits.ended, waits.over, call_of(agent, "hang").outcome) == ("", False, None)


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_mission_whose_call_ended_with_another_one_has_not_completed() -> None:
    def both(request: ModelRequest) -> Answer:
        return asks(("hang", {})) if {FOLLOW, HANG} <= set(news(request)) else says("fine")

    world = LineWorld()
    async with world.with_model(FunctionModel(both, lambda: 0.5), answer_timeout_s=1.0) as agent:
        await agent.say("hello")
        await asyncio.sleep(0.2)
        withdrawn, other = await agent.say(FOLLOW), await agent.say(HANG)
        await until(lambda: world.bridge.calls_ and agent.core.loop.turn is None)
        withdrawn.end("cancelled")
        await agent.over(other)
        assert (withdrawn.reason, other.reason) == ("cancelled", "call_cancelled")
        assert other.why == "hang: the operator has withdrawn what led to this call"


@pytest.mark.virtual_time
async def test_a_turn_without_missions_that_runs_away_ends_no_call_of_a_mission() -> None:
    def repeats(request: ModelRequest) -> Answer:
        new = news(request)
        if HANG in new:
            return asks(("hang", {}))
        return asks(("look", {})) if "follow" in new else says("ok")

    world = LineWorld()
    await world.bridge.call("follow", {}, caller="agent")  # it runs from before this agent: nobody's
    async with world.with_model(FunctionModel(repeats), answer_timeout_s=1.0) as agent:
        mission = await agent.say(HANG)
        await until(lambda: len(world.bridge.calls_) > 1)
        nobodys = call_of(agent, "follow")
        for number in range(40):
            if nobodys.outcome is not None:
                break
            nobodys.send("update", f"{number}")
            await asyncio.sleep(3)
        assert nobodys.outcome is Outcome.CANCELLED
        assert (mission.over, call_of(agent, "hang").outcome) == (False, None)


@pytest.mark.virtual_time
async def test_turns_without_missions_begin_anew_with_each_word_of_an_operator() -> None:
    def looks(request: ModelRequest) -> Answer:
        return asks(("look", {})) if "follow" in news(request) else says("ok")

    world = LineWorld()
    await world.bridge.call("follow", {}, caller="agent")
    async with world.with_model(FunctionModel(looks)) as agent:
        for number in range(40):
            call_of(agent, "follow").send("update", f"{number}")
            await asyncio.sleep(2)
            await agent.over(await agent.say(f"go on {number}"))
        assert call_of(agent, "follow").outcome is None
