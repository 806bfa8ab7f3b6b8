"""An operator approves a plan for the mission that asks for it: what comes after that mission has no part in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.common.names import tool_name
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.gate_inputs import offered
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.policies.test_looked_at_again import LAB, stand
from tests.agent.stage import Stage
from tests.bridge.scene import event
from tests.helpers import until

Calls = list[tuple[str, dict[str, Any]]]
INTO_THE_LAB: tuple[str, dict[str, Any]] = ("go_to", {"x": 2, "y": 0})
PLAN: Calls = [
    ("create_plan", {"goal": "look", "steps": [{"skill": "go_to", "arguments": {"x": 2, "y": 0}}]}),
    ("submit_plan", {"plan": "plan-1"}),
]


async def end(made: Stage, how: str) -> None:
    """End the mission that follows somebody."""
    if how == "withdrawn":
        (mission,) = made.agent.core.loop.missions
        await made.bridge.broker.cancel(mission, "no more of this")
    elif how == "over":
        for following in made.agent.core.calls.known.open:
            await made.bridge.broker.cancel(following.call_id, "enough")
    else:
        call = await (made.say("stop") if how == "stop" else made.harness.call("abort", caller="operator"))
        await call.closed()
    await until(lambda: not made.agent.core.loop.missions)


@pytest.mark.feature("B8")
@pytest.mark.parametrize("how", ["over", "abort", "stop", "withdrawn"])
@pytest.mark.virtual_time
async def test_an_approved_plan_is_void_when_its_mission_is_over_and_can_be_approved_anew(how: str) -> None:
    again: Calls = [("submit_plan", {"plan": "plan-1"}), INTO_THE_LAB]
    left = [""] if how == "over" else []
    brain = Brain([("follow", {}), *PLAN], "I wait", *left, [INTO_THE_LAB], again, "ok")
    async with robot_stage(brain, zones=[LAB], plan={"motions": None}) as (made, robot):
        stand(made.agent)
        await made.say("look into the lab")
        await decide(made, "approve")
        await made.until("assistant", "I wait")
        await end(made, how)
        plans = made.agent.core.gate_state.plans
        assert plans.get("plan-1").state == "void"
        second = await made.say("hello, what time is it?")
        await until(made.agent.core.gate_state.approvals.pending)
        assert "would enter the restricted zone 'lab'" in made.entries("tool")[-1].text
        assert robot.log_ == []
        assert (await decide(made, "approve"))["skill"] == "submit_plan"
        await second.result()
        assert robot.log_ == ["go_to 2 0"]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_plan_does_not_go_on_in_its_mission_when_an_operator_has_stopped_the_robot() -> None:
    brain = Brain([("follow", {}), *PLAN], "I wait", [INTO_THE_LAB], [PLAN[1], INTO_THE_LAB], "no")
    async with robot_stage(brain, zones=[LAB], plan={"motions": None}) as (made, robot):
        stand(made.agent)
        said = await made.say("look into the lab")
        first = await decide(made, "approve")
        await made.until("assistant", "I wait")
        stop_robot(made)
        plan = made.agent.core.gate_state.plans.get("plan-1")
        assert plan.reason == "an operator has stopped the robot"
        robot.done.set()
        again = await decide(made, "reject")
        assert again["skill"] == first["skill"] == "submit_plan"
        await said.closed()
        assert robot.log_ == []


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_plan_that_an_operator_approves_after_a_stop_of_the_robot_is_approved() -> None:
    brain = Brain(PLAN, [INTO_THE_LAB], "there")
    async with robot_stage(brain, zones=[LAB], plan={"motions": None}) as (made, robot):
        stand(made.agent)
        said = await made.say("look into the lab")
        await until(made.agent.core.gate_state.approvals.pending)
        stop_robot(made)
        await decide(made, "approve")
        await said.closed()
        assert robot.log_ == ["go_to 2 0"]


def stop_robot(made: Stage) -> None:
    """Let a plan's agent hear that a stop of the robot has ended a call of the plan's mission."""
    gates = made.agent.core.gate_state
    stop = event(9, "close", text=f"{STOPPED}: wait", data={"outcome": "cancelled"})
    gates.call_ended(stop, tuple(gates.plans.get("plan-1").missions), by_agent=False)


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_plan_is_no_other_missions_that_goes_on_beside_its_own() -> None:
    brain = Brain([("follow", {}), *PLAN], "I wait", [INTO_THE_LAB], "no", [INTO_THE_LAB], "there")
    async with robot_stage(brain, zones=[LAB], plan={"motions": None}) as (made, robot):
        stand(made.agent)
        await made.say("look into the lab")
        await decide(made, "approve")
        await made.until("assistant", "I wait")
        await (await made.say("hello")).result()
        assert robot.log_ == []
        robot.done.set()  # what its own mission waits for
        await until(lambda: robot.log_ == ["go_to 2 0"])


@pytest.mark.feature("B8")
@pytest.mark.parametrize("end", ["there", [("hand_back", {"report": "there"})]], ids=["says so", "hands back"])
@pytest.mark.virtual_time
async def test_a_sub_agent_works_on_its_missions_plan_and_leaves_what_it_has_not_done(end: Answer) -> None:
    more: dict[str, Any] = {"skill": "go_to", "arguments": {"x": 2, "y": 0.5}}
    plan: Calls = [("create_plan", {"goal": "g", "steps": [PLAN[0][1]["steps"][0], more]}), PLAN[1]]
    delegate: Calls = [("delegate", {"agent": "helper", "task": "go there"})]
    brain = Brain(plan, delegate, [("go_to", more["arguments"])], "done", helper=[[INTO_THE_LAB], end])
    agents = {"helper": {"description": "walks", "prompt": "helper"}}
    async with robot_stage(brain, zones=[LAB], plan={"motions": 0}, agents=agents) as (made, robot):
        stand(made.agent)
        said = await made.say("go")
        await decide(made, "approve")
        await said.result()
        assert robot.log_ == ["go_to 2 0", "go_to 2 0.5"]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_planned_call_that_waits_does_not_begin_when_the_operator_has_aborted_its_plan() -> None:
    brain = Brain(PLAN, [INTO_THE_LAB], "no")
    async with robot_stage(brain, zones=[LAB]) as (made, robot):
        stand(made.agent)
        await (await made.harness.call("step", caller="operator", mode="on")).result()
        await made.say("go")
        core = made.agent.core
        for _ in PLAN:
            await until(lambda: core.control.waiting)
            core.control.step()
            await asyncio.sleep(0.1)
        await decide(made, "approve")
        await until(lambda: core.control.waiting)
        (step,) = core.gate_state.plans.get("plan-1").steps
        assert (step.used, step.lapsed) == (True, False)
        core.loop.begin_abort()
        assert step.lapsed
        await until(lambda: not core.loop.missions)
        assert robot.log_ == []


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_an_approval_does_not_outlive_the_process(tmp_path: Path) -> None:
    world = LineWorld()
    step = {"skill": "move", "arguments": {"by": 3}}
    first = FunctionModel(
        in_turn(
            asks(
                ("follow", {}), ("create_plan", {"goal": "g", "steps": [step]}), ("submit_plan", {"plan": "plan-1"})
            ),
            says("I wait"),
        )
    )
    async with world.with_model(first, tmp_path, plan={"motions": 0}) as agent:
        mission = await agent.say("go")
        approvals = agent.core.gate_state.approvals
        await until(approvals.pending)
        approvals.decide(approvals.pending()[0].id, "approve")
        await until(lambda: len(first.requests) == 2)
        await asyncio.sleep(1)
        await agent.leave()
        second = FunctionModel(
            in_turn(asks(("submit_plan", {"plan": "plan-1"})), asks(("move", {"by": 3})), says("then not"))
        )
        async with world.with_model(second, tmp_path, plan={"motions": 0}) as successor:
            assert mission.id in successor.core.loop.missions, "the same mission goes on"
            with pytest.raises(SkillError, match=r"no plan has the id 'plan-1'.*before a restart"):
                successor.core.gate_state.plans.get("plan-1")
            world.released.set()
            await until(lambda: not successor.core.loop.missions)
            assert "needs an approved plan" in successor.data("result")[-1]["text"]
            assert world.log == ["follow ended"]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_plan_names_a_skill_as_the_model_is_offered_it() -> None:
    world, name = LineWorld(), f"{'north_hall_' * 6}move"
    world.bridge.bodies[name] = offered(name, motion=True), world.move
    step = {"skill": tool_name(name), "arguments": {"by": 3}}
    calls = [asks(("create_plan", {"goal": "go", "steps": [step]})), asks(("submit_plan", {"plan": "plan-1"}))]
    async with world.agent(*calls, asks((name, {"by": 3})), says("well"), plan={"motions": 0}) as agent:
        mission = await agent.say("go")
        approvals = agent.core.gate_state.approvals
        await until(approvals.pending)
        approvals.decide(approvals.pending()[0].id, "approve")
        await agent.over(mission)
    assert world.log == ["move 3"]
    assert [each.skill for each in agent.core.gate_state.plans.get("plan-1").steps] == [name]
