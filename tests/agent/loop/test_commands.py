"""Words for the offline model are commands: a mission whose command is not done, or not known, has not completed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.agent.missions.end_reasons import explained
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.offline import OfflineModel
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Body, FakeBridge, FakeCall, offered
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says


async def cancelled(robot: Robot, agent: AgentInMemory, input: str) -> Mission:
    """A mission, over, whose call somebody outside has cancelled."""
    mission = await agent.say(input)
    while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    await robot.bridge.cancel(next(iter(robot.bridge.calls_)), "enough")
    return await agent.over(mission)


class Robot:
    """``follow_person`` says something at first, and ends as the test wants."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        skills: dict[str, tuple[Any, Body]] = {
            "move": (offered("move"), self.move),
            "observe": (offered("observe"), self.observe),
            "follow_person": (offered("follow_person"), self.follow),
        }
        self.bridge = FakeBridge(skills)

    def agent(self) -> AgentInMemory:
        agent = AgentInMemory(self.bridge, None, {"plan": {"motions": None}})  # type: ignore[arg-type]
        agent.core.model.adapter = OfflineModel()
        return agent

    async def move(self, call: FakeCall) -> str:
        if call.arguments["distance_m"] > 5:
            raise SkillError("too far")
        if call.arguments["distance_m"] == 1.25:
            await self.lost.wait()
        return "moved"

    async def observe(self, call: FakeCall) -> str:
        return "a wall"

    async def follow(self, call: FakeCall) -> str:
        call.send("update", "following")
        await self.lost.wait()
        raise SkillError("lost them")


@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    ("input", "reason", "why"),
    [
        ("move 1", "completed", ""),
        ("help", "completed", ""),
        ("move 9", "call_failed", "move: too far"),
        ("move 9, what do you see", "call_failed", "move: too far"),
        ("blah blah", "not_understood", ""),
        ("what do you see and blah blah", "not_understood", ""),
        ("turn left 90", "not_understood", ""),  # a skill that nobody offers
    ],
)
@pytest.mark.virtual_time
async def test_a_mission_ends_as_its_command_did(input: str, reason: str, why: str) -> None:
    async with Robot().agent() as agent:
        mission = await agent.over(await agent.say(input))
        assert (mission.reason, mission.why) == (reason, why)


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
async def test_of_two_inputs_in_a_turn_only_the_one_that_is_no_command_is_not_understood() -> None:
    async with Robot().agent() as agent:
        agent.core.control.pause()
        inputs = ["move 1", "blah blah", "what do you see"]
        missions = [await agent.say(text) for text in inputs]
        agent.core.control.resume()
        reasons = [(await agent.over(mission)).reason for mission in missions]
        assert reasons == ["completed", "not_understood", "completed"]
        assert len(agent.data("stop")) == 1, "it was one turn"
        assert agent.data("stop")[-1]["about"] == agent.data("answer")[-1]["about"] == (missions[1].id,)


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
async def test_what_fails_later_is_a_failure_of_its_own_mission_only() -> None:
    robot = Robot()
    async with robot.agent() as agent:
        following = await agent.say("follow a man")
        while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        agent.core.control.pause()
        robot.lost.set()
        await asyncio.sleep(1)
        looking, puzzling = await agent.say("what do you see"), await agent.say("move 1")
        agent.core.control.resume()
        for mission in (following, looking, puzzling):
            await agent.over(mission)
        assert (following.reason, following.why) == ("call_failed", "follow_person: lost them")
        assert [looking.reason, puzzling.reason] == ["completed", "completed"]


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
@pytest.mark.parametrize("ends", ["cancelled", "lost"])
async def test_the_answer_to_a_mission_tells_nothing_of_one_that_was_cancelled(ends: str) -> None:
    robot = Robot()
    async with robot.agent() as agent:
        following = await agent.say("follow a man")
        while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        if ends == "lost":
            robot.lost.set()
        following.end("cancelled")
        await agent.over(following)
        moving = await agent.over(await agent.say("move 1"))
        assert (moving.reason, moving.text) == ("completed", "move: done")


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("input", "call"), [("follow a man", "follow_person"), ("move 1.25", "move")], ids=["afterwards", "in its turn"]
)
async def test_a_mission_whose_last_call_somebody_has_cancelled_did_not_complete(input: str, call: str) -> None:
    robot = Robot()
    async with robot.agent() as agent:
        mission = await cancelled(robot, agent, input)
        assert (mission.reason, mission.why) == ("call_cancelled", f"{call}: enough")
        assert (
            explained(mission.reason, mission.why) == f"the mission did not complete: call_cancelled ({call}: enough)"
        )
        recorded = [event.data.get("cancelled") for event in agent.core.events.after(0)]
        assert recorded.count(f"{call}: enough") == 1, "it is known after a restart"


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([asks(("follow_person", {})), says("I follow"), says("all is well")], "call_cancelled"),
        ([asks(("follow_person", {})), says("I follow"), asks(("observe", {})), says("all is well")], "completed"),
    ],
    ids=["no further call", "another call"],
)
async def test_what_a_model_calls_after_a_cancel_decides_whether_its_mission_completes(
    answers: list[Any], reason: str
) -> None:
    robot = Robot()
    async with robot.agent() as agent:
        agent.core.model.adapter = FunctionModel(in_turn(*answers))
        mission = await cancelled(robot, agent, "go")
        assert (mission.reason, mission.text) == (reason, "all is well")


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
async def test_a_call_that_the_model_itself_has_cancelled_does_not_make_its_mission_incomplete() -> None:
    robot = Robot()
    async with robot.agent() as agent:
        answers = iter(("follow", "cancel", "say"))

        def answer(request: Any) -> Any:
            match next(answers, "say"):
                case "follow":
                    return asks(("follow_person", {}))
                case "cancel":
                    return asks(("cancel_call", {"call_id": next(iter(robot.bridge.calls_))}))
            return says("done")

        agent.core.model.adapter = FunctionModel(answer)
        mission = await agent.over(await agent.say("follow a man for a moment"))
        assert "call_cancelled" not in str([event.data for event in agent.core.events.after(0)])
        assert mission.reason == "completed"


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
@pytest.mark.parametrize("input", ["follow a man", "move 1.25"], ids=["afterwards", "in its turn"])
async def test_a_mission_whose_call_was_ended_by_a_stop_of_the_robot_did_not_complete(input: str) -> None:
    robot = Robot()
    why = f"{STOPPED}: on the operator's page"
    async with robot.agent() as agent:
        mission = await agent.say(input)
        while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        await robot.bridge.cancel(next(iter(robot.bridge.calls_)), why)
        await agent.over(mission)
        assert (mission.reason, mission.why) == ("stopped", why)
        assert explained(mission.reason, mission.why) == f"the mission did not complete: stopped ({why})"


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
async def test_what_a_model_says_of_a_stop_does_not_make_its_mission_complete() -> None:
    robot = Robot()
    async with robot.agent() as agent:
        following = asks(("follow_person", {}))
        agent.core.model.adapter = FunctionModel(in_turn(following, says("I follow"), says("all is well")))
        mission = await agent.say("go")
        while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        await robot.bridge.cancel(next(iter(robot.bridge.calls_)), STOPPED)
        await agent.over(mission)
        assert (mission.reason, mission.why, mission.text) == ("stopped", STOPPED, "all is well")
