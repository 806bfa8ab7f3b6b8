"""What a sub-agent does is done by the mission: how its calls end, and what it uses, counts for the whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.models.protocol import ModelRequest
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.function_model import Answer, FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

AGENTS = {"helper": {"description": "does things", "prompt": "helper"}}
DELEGATES = asks(("delegate", {"agent": "helper", "task": "go on"}))
STOP, CANCEL = f"{STOPPED}: a child", "by the operator"


@pytest.mark.feature("E6", "D4")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("end", "then", "reason", "why"),
    [
        (STOP, [], "stopped", STOP),
        (STOP, [asks(("look", {}))], "stopped", STOP),
        (CANCEL, [], "call_cancelled", f"hang: {CANCEL}"),
        (CANCEL, [asks(("look", {}))], "completed", ""),
    ],
    ids=["stopped", "stopped, then another call", "cancelled", "cancelled, then another call"],
)
@pytest.mark.parametrize("who", ["the sub-agent", "the agent"])
@pytest.mark.virtual_time
async def test_who_ends_a_call_of_a_sub_agent_ends_one_of_the_mission(
    depth: int, end: str, then: list[Answer], reason: str, why: str, who: str
) -> None:
    world = LineWorld()
    inner, outer = (then, []) if who == "the sub-agent" else ([], then)
    done = [says("done") for _ in range(depth - 1)]
    answers = [*[DELEGATES] * depth, asks(("hang", {})), *inner, says("done"), *done, *outer, says("all done")]
    async with world.agent(*answers, agents=AGENTS) as agent:
        mission = await agent.say("go")
        await until(lambda: bool(world.bridge.calls_))
        (call,) = world.bridge.calls_.values()
        await world.bridge.cancel(call.id, end)
        await agent.over(mission)
        assert (mission.text, mission.reason, mission.why) == ("all done", reason, why)


@pytest.mark.feature("E6", "D4")
@pytest.mark.parametrize(
    ("end", "then", "found"),
    [
        (STOP, says("done"), ("stopped", STOP)),
        (CANCEL, says("done"), ("call_cancelled", f"hang: {CANCEL}")),
        (CANCEL, asks(("look", {})), ("completed", "")),
    ],
    ids=["stopped", "cancelled", "cancelled, then another call"],
)
@pytest.mark.virtual_time
async def test_who_ended_a_call_of_a_sub_agent_is_known_after_a_restart(
    end: str, then: Answer, found: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, steps = LineWorld(), [DELEGATES, asks(("hang", {})), then]
    before = FunctionModel(in_turn(*steps), lambda: 1000.0 if len(before.requests) > len(steps) else 0.0)
    async with world.with_model(before, tmp_path, agents=AGENTS) as agent:
        await agent.say("go")
        await until(lambda: bool(world.bridge.calls_))
        (call,) = world.bridge.calls_.values()
        await world.bridge.cancel(call.id, end)
        await until(lambda: len(before.requests) == len(steps) + 1)
        monkeypatch.setattr(agent.core.record, "_append", lambda mission, line: True)  # as if it was killed
        await agent.leave()
        monkeypatch.undo()
        async with world.with_model(FunctionModel(in_turn(says("all done"))), tmp_path, agents=AGENTS) as successor:
            (mission,) = successor.core.loop.missions.values()
            await successor.over(mission)
            assert (mission.text, mission.reason, mission.why) == ("all done", *found)


@pytest.mark.feature("E6", "D2")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("reason", "config"),
    [
        ("max_tokens", {"limits": {"max_tokens": 40}}),
        ("max_cost", {"limits": {"max_cost": 0.035}, "model_options": {"pricing": {"input": 1000, "output": 1}}}),
    ],
)
@pytest.mark.virtual_time
async def test_what_a_sub_agent_uses_ends_the_whole_mission_when_it_is_too_much(
    reason: str, config: dict[str, Any], depth: int
) -> None:
    world = LineWorld()
    delegates = asks(("delegate", {"agent": "helper", "task": "go on"}), ("move", {"by": 9}))
    answers = [delegates] * depth + [asks(("move", {"by": n})) for n in range(9)]
    async with world.agent(*answers, agents=AGENTS, **config) as agent:
        mission = await agent.over(await agent.say("go"))
        assert mission.reason == reason
        assert len(agent.model.requests) == mission.spent.requests == (3 if reason == "max_tokens" else 4)
        assert "move 9" not in world.log, "what was asked for beside the task is not done any more"
        ends = [end["reason"] for end in agent.data("sub_mission_end")]
        assert ends == [reason] * depth
        assert len(agent.data("result")) == sum(len(data["tool_calls"]) for data in agent.data("answer"))


@pytest.mark.virtual_time
async def test_a_sub_agent_that_hands_back_ends_no_mission_but_its_own() -> None:
    world, back = LineWorld(), asks(("hand_back", {"report": "done"}))
    async with world.agent(DELEGATES, back, asks(("move", {"by": 1})), says("all done"), agents=AGENTS) as agent:
        mission = await agent.over(await agent.say("go"))
        assert (mission.text, mission.reason, world.log) == ("all done", "completed", ["move 1"])


@pytest.mark.feature("E6")
@pytest.mark.parametrize("order", [("follow", "hand_back"), ("hand_back", "follow")])
@pytest.mark.virtual_time
async def test_what_an_answer_begins_beside_handing_back_is_the_agents_wherever_it_stands(
    order: tuple[str, str],
) -> None:
    world, arguments = LineWorld(), {"follow": {}, "hand_back": {"report": "I follow her"}}
    answer = asks(*[(name, arguments[name]) for name in order])
    said = [says(text) for text in ("she is followed", "at the door", "hello")]
    async with world.agent(DELEGATES, answer, *said, agents=AGENTS) as agent:
        mission = await agent.say("go")
        await until(lambda: any(data["reason"] == "completed" for data in agent.data("stop")))
        (call,) = world.bridge.calls_.values()
        call.send("update", "she is at the door")
        await until(lambda: any("she is at the door" in data["text"] for data in agent.data("update")))
        assert (await agent.over(await agent.say("hello"))).reason == "completed"
        assert not mission.over
        world.released.set()
        await agent.over(mission)


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_call_that_is_handed_over_twice_is_handed_over_once() -> None:
    world = LineWorld()
    handed = asks(("delegate", {"agent": "helper", "task": "watch her", "calls": ["c0", "c0"]}))
    back = asks(("hand_back", {"report": "seen"}))
    async with world.agent(asks(("follow", {})), handed, back, says("all done"), agents=AGENTS) as agent:
        mission = await agent.say("go")
        await until(lambda: any(data["text"] == "all done" for data in agent.data("answer")))
        assert [each.id for call in agent.core.calls.known.open for each in call.missions] == [mission.id]
        world.released.set()
        assert (await agent.over(mission)).reason == "completed"


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_urgent_words_and_updates_that_a_sub_agent_has_not_read_are_heard_after_a_restart(
    tmp_path: Path,
) -> None:
    def answer(request: ModelRequest) -> Answer:
        if len(request.messages) > 2:
            return says("I see")
        return asks(("follow", {})) if request.messages[0].text == "helper" else DELEGATES

    world = LineWorld()
    async with world.with_model(FunctionModel(answer), tmp_path, agents=AGENTS) as agent:
        await agent.say("go")
        await until(lambda: bool(world.bridge.calls_))
        (call,) = world.bridge.calls_.values()
        await until(lambda: agent.core.loop.state is LoopState.EXECUTING and call.seq > 1)
        await asyncio.sleep(1)
        agent.core.control.pause()
        call.send("update", "found her")
        await asyncio.sleep(1)
        await agent.core.work.hear(
            OperatorInput("look left", (agent.core.missions.begin("second", "look left"),), now=True)
        )
    async with world.with_model(FunctionModel(lambda request: says("ok")), tmp_path, agents=AGENTS) as successor:
        successor.core.control.resume()
        await until(lambda: any("found her" in data["text"] for data in successor.data("update")))
        world.released.set()


@pytest.mark.feature("E6", "D2")
@pytest.mark.parametrize("order", [("hang", "hand_back"), ("hand_back", "hang")])
@pytest.mark.parametrize("end", ["cancelled", "deadline"])
@pytest.mark.virtual_time
async def test_what_an_answer_begins_beside_handing_back_ends_with_the_mission(
    order: tuple[str, str], end: str
) -> None:
    world, arguments = LineWorld(), {"hang": {}, "hand_back": {"report": "it hangs"}}
    limits = {"deadline_s": 3.0} if end == "deadline" else {}
    answer = asks(*[(name, arguments[name]) for name in order])
    async with world.agent(DELEGATES, answer, says("all done"), says("well"), agents=AGENTS, limits=limits) as agent:
        mission = await agent.say("go")
        await until(lambda: bool(world.bridge.calls_))
        (call,) = world.bridge.calls_.values()
        await asyncio.sleep(1)
        if end == "cancelled":
            mission.end("cancelled")
        await agent.over(mission)
        assert (mission.reason, call.outcome) == (end, Outcome.CANCELLED)
