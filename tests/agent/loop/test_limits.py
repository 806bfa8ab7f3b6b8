"""Every reason to stop, and every bound."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.missions.budget import over_budget
from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.missions.stop_conditions import (
    Progress,
    RobotState,
    battery_below,
    goal_reached,
    load_condition,
    outside,
)
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import ModelError, ModelRequest
from dimos_streams.errors import UserError
from dimos_streams.operator.messages.agent import Usage
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeCall, offered
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until


async def ended(agent: AgentInMemory, text: str = "go") -> Mission:
    return await agent.over(await agent.say(text))


def failing(request: ModelRequest) -> Answer:
    raise ModelError("no key")


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_what_a_mission_may_use_it_may_use_up_and_the_outermost_one_ends() -> None:
    limits, outer = LoopLimits(max_tokens=10), Mission("m")
    inner = Mission("m/1", parent=outer)
    inner.spend(Usage(input_tokens=7, output_tokens=3))
    assert over_budget([inner], limits) is None
    inner.spend(Usage(input_tokens=1))
    assert over_budget([inner], limits) == (outer, "max_tokens")


MOVES = [asks(("move", {"by": n})) for n in range(10)]


@pytest.mark.feature("B9", "D2")
@pytest.mark.parametrize(
    ("answers", "config", "reason"),
    [
        ([MOVES[0], says("done")], {}, "completed"),
        ([MOVES[0], MOVES[1], says("done")], {"max_iterations": 3}, "completed"),
        ([MOVES[0], MOVES[1], MOVES[2], says("done")], {"max_iterations": 3}, "max_iterations"),
        ([asks(("fail", {"n": n})) for n in range(9)], {}, "consecutive_errors"),
        ([asks(("fail", {"n": n}), ("look", {})) for n in range(4)] + [says("done")], {}, "completed"),
        ([asks(("fail", {"n": n}), ("dance", {})) for n in range(9)], {}, "consecutive_errors"),
        (
            # What is refused for a rule of the operator's is no mistake of the model's.
            [asks(("fail", {"n": n}), ("move", {"by": n})) for n in range(4)] + [says("done")],
            {"plan": {"motions": 0}},
            "completed",
        ),
        ([MOVES[0], MOVES[1], says("done")], {"limits": {"max_tokens": 14}}, "max_tokens"),
        (
            [MOVES[0], MOVES[1], says("done")],
            {"limits": {"max_cost": 0.02}, "model_options": {"pricing": {"input": 1000, "output": 1}}},
            "max_cost",
        ),
        ([asks(("hang", {}))], {"limits": {"deadline_s": 5}}, "deadline"),
        ([asks(("move", {"by": 1}))] * 10, {"max_iterations": 50}, "repetition"),
    ],
)
@pytest.mark.virtual_time
async def test_reasons(answers: list[Answer], config: dict[str, Any], reason: str) -> None:
    world = LineWorld()
    async with world.agent(*answers, **config) as agent:
        mission = await ended(agent)
        assert mission.reason == reason
        assert agent.data("stop")[-1]["reason"] == reason
        assert agent.data("done")[-1]["reason"] == reason
        # Each call that was asked for has a result, so the next turn can be asked.
        asked = [call["id"] for data in agent.data("answer") for call in data["tool_calls"]]
        assert len(asked) == len(agent.data("result"))


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_model_that_fails_ends_the_turn_and_not_the_agent() -> None:
    world = LineWorld()
    model = FunctionModel(failing)
    async with world.with_model(model) as agent:
        assert (await ended(agent)).reason == "error"
        assert agent.data("error")[0]["text"] == "the model failed: no key"
        model._answer = lambda request: says("here I am")
        assert (await ended(agent)).text == "here I am"


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_condition_in_which_something_was_cancelled_ends_the_turn_and_not_the_agent() -> None:
    def cancelled(progress: Progress) -> bool:
        raise asyncio.CancelledError

    async with LineWorld().agent(MOVES[0], says("here I am")) as agent:
        stop_policy = agent.core.loop.parts.stop_policy
        stop_policy.conditions = (cancelled,)
        assert (await ended(agent)).reason == "error"
        assert "turn agent-1 ended because something that it awaited was cancelled" in agent.data("error")[0]["text"]
        stop_policy.conditions = ()
        assert (await ended(agent)).text == "here I am"


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_a_model_that_only_comments_on_what_a_skill_reports_ends_at_its_budget() -> None:
    world = LineWorld()

    async def patrol(call: FakeCall) -> str:
        for lap in range(9):
            await asyncio.sleep(5)
            call.send("update", f"lap {lap}")
        return "nine laps"

    world.bridge.bodies["patrol"] = (offered("patrol"), patrol)
    comments = [says(f"lap {lap}") for lap in range(9)]
    async with world.agent(asks(("patrol", {})), *comments, says("done"), limits={"max_tokens": 30}) as agent:
        mission = await ended(agent)
        assert (mission.reason, mission.spent.tokens) == ("max_tokens", 15 + 11 + 11)
        assert len(agent.model.requests) == 3
        (call,) = world.bridge.calls_.values()
        await until(lambda: call.outcome is Outcome.CANCELLED)


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_a_hung_skill_ends_at_its_bound() -> None:
    world = LineWorld()
    config = {"limits": {"call_timeout_s": 4}, "answer_timeout_s": 60}
    async with world.agent(asks(("hang", {})), says("too bad"), **config) as agent:
        began = clock.monotonic()
        mission = await ended(agent)
        assert clock.monotonic() - began == pytest.approx(4, abs=0.5)
        assert "it ran longer than 4 s" in agent.data("result")[0]["text"]
        assert mission.text == "too bad"


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_a_skill_that_does_not_even_end_when_cancelled_is_given_up_at_its_bound() -> None:
    world = LineWorld()
    config = {"limits": {"call_timeout_s": 4}}
    async with world.agent(asks(("deaf", {})), says("it works"), says("it is lost"), **config) as agent:
        began = clock.monotonic()
        mission = await ended(agent)
        assert clock.monotonic() - began == pytest.approx(4, abs=0.5)
        (update,) = agent.data("update")
        assert update["event"]["data"]["outcome"] == "timed_out"
        assert "may still run" in update["text"]
        assert mission.text == "it is lost"
        world.released.set()


@pytest.mark.feature("D2")
@pytest.mark.parametrize("fate", ["runs", "has closed", "is unknown"])
@pytest.mark.virtual_time
async def test_after_a_gap_a_call_that_was_given_up_counts_as_long_as_it_may_run(fate: str) -> None:
    world = LineWorld()
    config = {"limits": {"call_timeout_s": 4}}
    async with world.agent(asks(("deaf", {})), says("it works"), says("it is lost"), **config) as agent:
        await ended(agent)
        (call,) = world.bridge.calls_.values()
        assert [left.call_id for left in agent.core.calls.memory.given_up] == [call.id]
        if fate == "has closed":
            call.outcome = Outcome.CANCELLED  # its close is what falls into the gap
        elif fate == "is unknown":
            del world.bridge.calls_[call.id]
        gap = ToolEvent(utime=1, call_id="", seq=0, type="gap", module="", skill="", caller="agent", text="lost")
        await agent.core.calls.incoming.observe(gap)
        assert [left.call_id for left in agent.core.calls.memory.given_up] == [call.id] * (fate == "runs")
        world.released.set()


@pytest.mark.feature("D2")
@pytest.mark.parametrize("deadline_s", [5, None])
@pytest.mark.virtual_time
async def test_a_hung_model_ends_at_the_deadline_or_when_it_was_silent_for_too_long(deadline_s: float | None) -> None:
    from dimos_streams.agent.models.silence import SilenceModel

    world = LineWorld()
    hung = FunctionModel(lambda request: says("never"), lambda: 10_000.0)
    async with world.with_model(hung, limits={"deadline_s": deadline_s}) as agent:
        agent.core.model.adapter = SilenceModel(hung, name="hung", silence_s=7)
        began = clock.monotonic()
        mission = await ended(agent)
        assert clock.monotonic() - began == pytest.approx(deadline_s or 7, abs=0.5)
        assert mission.reason == ("deadline" if deadline_s else "error")
        assert hung.streams == 0


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_the_deadline_is_of_the_whole_mission_and_ends_its_calls_only() -> None:
    world = LineWorld()
    async with world.agent(asks(("follow", {})), says("I follow"), says("moved")) as agent:
        agent.core.model.limits = agent.core.model.limits.model_copy(update={"deadline_s": 100.0})
        mission = await agent.say("follow")
        await asyncio.sleep(60)
        other = await agent.say("say something")
        await agent.over(other)
        assert not mission.over
        await asyncio.sleep(41)
        assert (mission.over, mission.reason) == (True, "deadline")
        assert world.log == ["follow ended"]
        # What became of its call is in the record, and is nothing to react to.
        assert agent.kinds()[-2:] == ["update", "done"]


@pytest.mark.feature("D3")
@pytest.mark.virtual_time
async def test_a_condition_stops_before_what_was_asked_for_runs_and_its_reason_stays() -> None:
    world = LineWorld()
    seen: list[Progress] = []

    def condition(progress: Progress) -> str | None:
        seen.append(progress)
        return "enough moved" if progress.asked and len(progress.executed) == 2 else None

    async with world.agent(*MOVES[1:], max_iterations=50) as agent:
        agent.core.loop.parts.stop_policy.conditions = (condition,)
        mission = await ended(agent)
        assert mission.reason == agent.data("stop")[0]["reason"] == "enough moved"
        assert world.log == ["move 1", "move 2"]
        assert agent.data("result")[-1]["text"] == "not run: enough moved"
        last = seen[-1]
        assert (last.iteration, last.asked, last.spent.tokens) == (3, ("move",), 45)
        assert [call.arguments["by"] for call in last.executed] == [1, 2]
        assert [call.text for call in last.last_results] == ['done\nresult: "at 3"']


def progress(**robot: float) -> Progress:
    state = RobotState(**robot)
    return Progress(
        iteration=1, response="", asked=(), spent=Mission("m").spent, executed=(), last_results=(), robot=state
    )


@pytest.mark.feature("D3")
def test_ready_made_conditions() -> None:
    assert battery_below(0.2)(progress(battery=0.15)) == "battery: 15% left"
    assert battery_below(0.2)(progress(battery=0.25)) is None
    assert battery_below(0.2)(progress()) is None
    assert goal_reached(1, 1, 0.5)(progress(x=1.2, y=0.8)) == "goal_reached"
    assert goal_reached(1, 1, 0.5)(progress(x=2, y=0.8)) is None
    fence = outside([(0, 0), (4, 0), (4, 4), (0, 4)])
    assert fence(progress(x=2, y=2)) is None
    assert fence(progress(x=5, y=2)) == "geofence: the robot is outside, at (5.00, 2.00)"
    assert fence(progress(x=4, y=2)) is None, "on the fence it has not left"
    assert fence(progress()) is None


@pytest.mark.feature("D3")
@pytest.mark.virtual_time
async def test_a_condition_of_the_blueprint_ends_the_calls_too() -> None:
    world = LineWorld()
    config = {"stop_when": {"outside": [(-1, -1), (2, -1), (2, 1), (-1, 1)]}}
    async with world.agent(asks(("follow", {}), ("move", {"by": 3})), says("never"), **config) as agent:
        agent.core.loop.parts.stop_policy.robot = lambda: RobotState(x=world.x, y=0.0)
        mission = await ended(agent)
        assert mission.reason == "geofence: the robot is outside, at (3.00, 0.00)"
        assert world.log == ["move 3", "follow ended"]


@pytest.mark.virtual_time
async def test_a_condition_that_can_not_be_imported() -> None:
    with pytest.raises(UserError, match="stop condition 'nowhere:no' can't be imported"):
        LineWorld().agent(stop_when={"conditions": ["nowhere:no"]})


@pytest.mark.feature("D8")
@pytest.mark.virtual_time
async def test_usage_sums_up_with_what_a_cut_answer_has_used() -> None:
    world = LineWorld()
    options = ModelOptions.model_validate({"pricing": {"input": 1.0, "output": 2.0}})
    async with world.agent(*MOVES[:3], says("done"), model_options=options.model_dump()) as agent:
        mission = await ended(agent)
        each = agent.data("usage")
        assert len(each) == 4
        assert mission.spent.requests == 4
        assert mission.spent.input_tokens == sum(data["input_tokens"] for data in each) == 40
        assert mission.spent.output_tokens == sum(data["output_tokens"] for data in each) == 16
        assert mission.spent.cost == pytest.approx(72e-6)
        assert agent.data("done")[0]["cost"] == pytest.approx(72e-6)


def broken(progress: Progress) -> bool:
    raise RuntimeError("a bug")


async def waits(progress: Progress) -> bool:
    return False


def asks_nothing() -> bool:
    return False


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_condition_that_fails_ends_the_mission_and_is_named() -> None:
    world = LineWorld()
    async with world.agent(MOVES[0], says("done"), stop_when={"conditions": [f"{__name__}:broken"]}) as agent:
        assert (await ended(agent)).reason == f"stop_condition_failed: {__name__}:broken: RuntimeError: a bug"
        assert world.log == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("waits", "is asynchronous; nobody waits for it"),
        ("asks_nothing", "can't be asked about a Progress: too many positional arguments"),
        ("MOVES", "is no function"),
        ("brokn", "did you mean 'broken'"),
    ],
)
def test_what_is_no_condition_is_refused_before_it_is_asked(name: str, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        load_condition(f"{__name__}:{name}")
