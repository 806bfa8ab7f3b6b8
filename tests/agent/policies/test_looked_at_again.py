"""What gates have found is looked at again when a call begins: the world has gone on while it waited."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from dimos_streams.agent.control.control import Control
from dimos_streams.agent.module import Agent
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.base import Allow
from dimos_streams.agent.policies.gates.matching.zones import Zone, Zones
from dimos_streams.agent.policies.gates.motions import FreeMotions
from dimos_streams.agent.policies.gates.plan import PlanGate
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.agent.policies.plans import PlanRegistry
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import Events, offered, request, step
from tests.agent.policies.lookout_world import LookoutWorld, lookout_world, round_with
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.stage import NoConfig, Stage
from tests.helpers import until
from tests.skills.detections import odometry

LAB: dict[str, Any] = {"name": "lab", "polygon": [[1, -1], [3, -1], [3, 1], [1, 1]]}
ASK: dict[str, Any] = {"rules": [{"skill": name} for name in ("walk", "go_to")]}


def stand(agent: Agent, x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> None:
    agent.odom._take(odometry(x, y, yaw))


async def operator(made: Stage, name: str, **arguments: Any) -> None:
    await (await made.harness.call(name, caller="operator", **arguments)).result()


@pytest.mark.feature("B8")
@pytest.mark.parametrize("waits_for", ["approval", "step", "pause"])
@pytest.mark.virtual_time
async def test_a_robot_that_was_turned_while_its_call_waited_enters_no_zone(waits_for: str) -> None:
    brain = Brain([("walk", {"distance_m": -1.6})], [("walk", {"distance_m": 1.6})], "done")
    config: dict[str, Any] = {"zones": [LAB], "plan": {"motions": 1}}
    async with robot_stage(brain, approval={} if waits_for == "step" else ASK, **config) as (made, robot):
        control, approvals = made.agent.core.control, made.agent.core.gate_state.approvals
        stand(made.agent)
        if waits_for == "step":
            await operator(made, "step", mode="on")
        said = await made.say("back a little")
        await until(lambda: control.waiting or approvals.pending())
        if waits_for == "pause":
            await operator(made, "pause")
            await decide(made, "approve")
            await until(lambda: control.waiting)
        stand(made.agent, yaw=math.pi)
        if waits_for == "approval":
            await decide(made, "approve")
        await operator(made, "step" if waits_for == "step" else "resume")
        await until(lambda: len(made.entries("tool")) == 1)
        assert "restricted zone 'lab'" in made.entries("tool")[0].text
        assert robot.log_ == []
        # The one free motion is still there, for a way that is free now.
        await until(lambda: control.waiting or approvals.pending())
        await (operator(made, "step") if waits_for == "step" else decide(made, "approve"))
        await said.result()
        assert robot.log_ == ["walk 1.6"]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_part_of_a_motion_enters_no_zone_from_where_the_robot_is_then() -> None:
    yaw, emit = [math.pi], Events().emit
    plans = PlanRegistry(ApprovalRegistry(ApprovalSettings(), emit), emit, step)
    pose: Callable[[], PlanarPose] = lambda: PlanarPose(0.0, 0.0, yaw[0])  # noqa: E731
    gate = PlanGate(plans, Zones([Zone.model_validate(LAB)]), FreeMotions(emit), motions=lambda: 0, pose=pose)
    part = replace(request(offered("walk", motion=True), distance_m=1.6), part_of_motion=True)
    allowed = await gate.review(part)
    assert isinstance(allowed, Allow), "the whole has passed the gates as the motion that it is"
    assert await allowed.last_look() is None
    yaw[0] = 0.0
    refusal = await allowed.last_look()
    assert refusal is not None
    assert "it would enter the restricted zone 'lab'" in refusal.text


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_the_straight_way_is_the_one_from_where_the_robot_is_then() -> None:
    async with robot_stage(Brain([("go_to", {"x": 0, "y": 5})], "no"), zones=[LAB], approval=ASK) as (
        made,
        robot,
    ):
        stand(made.agent)
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        stand(made.agent, x=4, y=-5)  # the lab lies between
        await decide(made, "approve")
        await said.result()
        assert robot.log_ == []
        assert "restricted zone 'lab'" in made.entries("tool")[0].text


@pytest.mark.feature("B8", "D5")
@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.virtual_time
async def test_arguments_of_the_operator_are_looked_at_too(planned: bool) -> None:
    steps = [{"skill": "walk", "arguments": {"distance_m": 0.5}}]
    plan: list[Any] = [
        [("create_plan", {"goal": "g", "steps": steps}), ("submit_plan", {"plan": "plan-1"})],
    ]
    brain = Brain(*(plan if planned else []), [("walk", {"distance_m": 0.5})], "no")
    async with robot_stage(brain, zones=[LAB], approval=ASK) as (made, robot):
        stand(made.agent)
        said = await made.say("go")
        if planned:
            await decide(made, "approve")
        await decide(made, "approve", arguments={"distance_m": 2})
        await said.result()
        assert robot.log_ == []
        assert "walk(distance_m=2) needs an approved plan" in made.entries("tool")[-1].text


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
@pytest.mark.slow
async def test_a_planned_step_begins_wherever_the_robot_is_but_not_when_its_approval_has_lapsed() -> None:
    steps = [{"skill": "walk", "arguments": {"distance_m": distance}} for distance in (2, 3)]
    brain = Brain(
        [("create_plan", {"goal": "g", "steps": steps}), ("submit_plan", {"plan": "plan-1"})],
        [("walk", {"distance_m": 2})],
        [("walk", {"distance_m": 3})],
        "no",
    )
    approval = {**ASK, "timeout_s": None}
    async with robot_stage(brain, zones=[LAB], approval=approval, plan={"valid_s": 60}) as (made, robot):
        stand(made.agent, yaw=math.pi)
        said = await made.say("go")
        await decide(made, "approve")
        await until(lambda: made.agent.core.gate_state.approvals.pending())
        stand(made.agent)
        await decide(made, "approve")
        await until(lambda: robot.log_ == ["walk 2"])
        await until(lambda: made.agent.core.gate_state.approvals.pending())
        await asyncio.sleep(61)
        await decide(made, "approve")
        await said.result()
        assert robot.log_ == ["walk 2"]
        assert "the approval of its plan lapsed while the call waited" in made.entries("tool")[-1].text


@pytest.mark.feature("D5")
@pytest.mark.virtual_time
async def test_a_skill_that_is_disabled_between_the_gates_and_the_beginning_does_not_begin() -> None:
    async with robot_stage(Brain([("drop", {})], "no")) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        await operator(made, "pause")
        await decide(made, "approve")
        await operator(made, "set_skill", skill="drop", enabled=False)
        await operator(made, "resume")
        await said.result()
        assert robot.log_ == []
        assert "has disabled 'drop'" in made.entries("tool")[0].text


@pytest.mark.feature("D5")
@pytest.mark.parametrize("change", [{"approval": "ask"}, {"frame": "map"}, {"module": "another"}])
@pytest.mark.virtual_time
async def test_a_skill_that_is_another_one_when_its_call_begins_has_to_be_asked_for_again(
    change: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with robot_stage(Brain([("walk", {"distance_m": 2})], "no")) as (made, robot):
        control, gateway = made.agent.core.control, made.agent.core.gateway
        await operator(made, "step", mode="on")
        said = await made.say("go")
        await until(lambda: control.waiting)
        changed = [
            skill.model_copy(update=change) if skill.name == "walk" else skill for skill in await gateway.skills()
        ]
        monkeypatch.setattr(gateway, "skills", AsyncMock(return_value=changed))  # its module was restarted
        await asyncio.sleep(1)
        await operator(made, "step")
        await said.result()
        assert robot.log_ == []
        assert "'walk' has changed since the gates looked at it" in made.entries("tool")[0].text


class Creeping(Module):
    """Takes its time to end."""

    config: NoConfig
    log_: list[float]
    ending: bool

    async def start(self) -> None:
        """See ``Module``."""
        self.log_, self.ending = [], False

    @skill(motion=True, on_duplicate="replace")
    async def creep(self, call: Call, distance_m: float) -> None:
        """Creep."""
        self.log_.append(distance_m)
        try:
            await call.update("creeping")
            await asyncio.sleep(60)
        finally:
            self.ending = True
            await asyncio.sleep(0.3)
            self.ending = False


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_permission_is_taken_back_when_the_robot_is_turned_before_the_call_could_begin() -> None:
    robot = Creeping(name="creeping")
    brain = Brain([("creep", {"distance_m": 0.1})], round_with("creep", distance_m=-1.6))
    async with lookout_world(brain, robot, zones=[LAB]) as w:
        stand(w.agent)
        await w.say()
        await w.view("review_call", lambda view: view.answer == "may begin")
        stand(w.agent, yaw=math.pi)
        assert "restricted zone 'lab'" in (await w.lookout_closed("round")).text
        assert robot.log_ == [0.1]


@pytest.mark.slow
@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_permission_that_a_pause_has_held_is_looked_at_again() -> None:
    robot = Creeping(name="creeping")
    brain = Brain([("creep", {"distance_m": 0.1})], round_with("creep", distance_m=-1.6))
    async with lookout_world(brain, robot, zones=[LAB]) as w:
        stand(w.agent)
        await w.say()
        await w.view("review_call", lambda view: view.answer == "may begin")
        await w.operator("pause")
        await asyncio.sleep(5)
        stand(w.agent, yaw=math.pi)
        await w.operator("resume")
        assert "restricted zone 'lab'" in (await w.lookout_closed("round")).text
        assert robot.log_ == [0.1]


def results(w: LookoutWorld) -> list[str]:
    return [entry.text for entry in w.agent.conversation.entries if entry.role == "tool"]


def creeping(*distances: float) -> Brain:
    return Brain(*([("creep", {"distance_m": distance})] for distance in distances), "ok")


@pytest.mark.feature("B8", "E2")
@pytest.mark.virtual_time
async def test_a_call_that_replaces_another_is_judged_from_where_that_has_left_the_robot() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, -1.6), robot, zones=[LAB]) as w:
        stand(w.agent)
        await w.say()
        await until(lambda: robot.ending)
        stand(w.agent, yaw=math.pi)
        await until(lambda: len(results(w)) == 2)
        assert "restricted zone 'lab'" in results(w)[1]
        assert robot.log_ == [0.1]
        assert not robot.ending


@pytest.mark.feature("B8", "E2")
@pytest.mark.virtual_time
async def test_what_does_not_begin_because_the_robot_was_turned_is_no_free_motion() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, -1.6, 0.2), robot, zones=[LAB], plan={"motions": 2}) as w:
        stand(w.agent)
        await w.say()
        await until(lambda: robot.ending)
        stand(w.agent, yaw=math.pi)
        await until(lambda: robot.log_ == [0.1, 0.2])


@pytest.mark.feature("B8", "E2")
@pytest.mark.virtual_time
async def test_a_call_does_not_take_the_place_of_another_that_is_refused_itself() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, 1.6), robot, zones=[LAB]) as w:
        stand(w.agent)
        await w.say()
        await until(lambda: len(results(w)) == 2)
        assert "restricted zone 'lab'" in results(w)[1]
        (old,) = await w.views("creep")
        assert old.state == "open", "it goes on"
        assert not robot.ending


@pytest.mark.feature("B8", "E2")
@pytest.mark.virtual_time
async def test_a_call_whose_predecessor_ends_in_a_pause_begins_after_it() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, 0.2), robot) as w:
        await w.say()
        await until(lambda: robot.ending)
        await w.operator("pause")
        await asyncio.sleep(5)
        assert robot.log_ == [0.1]
        await w.operator("resume")
        await until(lambda: robot.log_ == [0.1, 0.2])


@pytest.mark.feature("B4", "E2")
@pytest.mark.virtual_time
async def test_a_call_whose_predecessor_ends_in_step_mode_waits_for_its_step() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, 0.2), robot) as w:
        await w.say()
        await until(lambda: robot.ending)
        await w.operator("step", mode="on")
        await until(lambda: w.agent.core.control.waiting)
        await asyncio.sleep(5)
        (waiting,) = w.agent.core.control.waiting
        assert (waiting.skill, waiting.arguments) == ("creep", {"distance_m": 0.2})
        assert [event.data["arguments"] for event in w.events if event.data.get("phase") == "waits"] == [
            {"distance_m": 0.2}
        ]
        assert robot.log_ == [0.1]
        await w.operator("step")
        await until(lambda: robot.log_ == [0.1, 0.2])


@pytest.mark.feature("B4", "E2")
@pytest.mark.virtual_time
async def test_a_step_for_a_call_that_has_to_wait_for_another_ones_end_is_enough() -> None:
    robot = Creeping(name="creeping")
    async with lookout_world(creeping(0.1, 0.2), robot) as w:
        control = w.agent.core.control
        control.step_mode()
        await w.say()
        for _ in (0.1, 0.2):
            await until(lambda: control.waiting)
            control.step()
            await asyncio.sleep(0.1)
        await until(lambda: robot.log_ == [0.1, 0.2])
        assert control.waiting == ()


@pytest.mark.slow
@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_a_permission_that_step_mode_has_held_needs_a_step() -> None:
    robot = Creeping(name="creeping")
    brain = Brain([("creep", {"distance_m": 0.1})], round_with("creep", distance_m=0.2))
    async with lookout_world(brain, robot) as w:
        await w.say()
        await w.view("review_call", lambda view: view.answer == "may begin")
        await w.operator("step", mode="on")
        await until(lambda: w.agent.core.control.waiting)
        await asyncio.sleep(5)
        (waiting,) = w.agent.core.control.waiting
        (going_round,) = await w.views("round")
        assert (waiting.skill, waiting.parent) == ("creep", going_round.call_id)
        assert robot.log_ == [0.1]
        assert (await w.views("review_call"))[0].text == "held: the operator steps through the agent's calls"
        await w.operator("step")
        await until(lambda: robot.log_ == [0.1, 0.2])


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_a_step_lasts_until_the_mode_changes() -> None:
    control = Control(EventLog("agent").emit)
    control.step_mode()
    permit = control.permit("look", {})
    waiting = asyncio.ensure_future(permit.wait())
    await asyncio.sleep(0)
    assert control.step() is not None
    await waiting
    assert permit.holds
    control.pause()
    assert not permit.holds
    control.step_mode()
    assert not permit.holds
    waiting = asyncio.ensure_future(permit.wait())
    await asyncio.sleep(0)
    control.step()
    control.pause()  # before the call has gone on
    await asyncio.sleep(1)
    assert not waiting.done()
    control.resume()
    await waiting
    assert permit.holds


@pytest.mark.feature("E2", "C5")
@pytest.mark.parametrize("asks", ["model", "skill"])
@pytest.mark.virtual_time
async def test_no_call_of_an_agent_takes_the_place_of_somebody_elses(asks: str) -> None:
    robot = Creeping(name="creeping")
    brain = creeping(0.2) if asks == "model" else Brain(round_with("creep", distance_m=0.2))
    async with lookout_world(brain, robot) as w:
        call_id = await w.call("creep", distance_m=0.1)
        await w.looking("creep")
        await w.say()
        if asks == "skill":
            refusal = (await w.lookout_closed("round")).text
        else:
            await until(lambda: results(w))
            refusal = results(w)[0]
        assert f"'creep' runs already as call {call_id!r} of 'operator'" in refusal
        assert "an operator can end that one" in refusal
        assert robot.log_ == [0.1]
        assert not robot.ending
        await w.call("creep", distance_m=0.3)  # an operator's call may
        await until(lambda: robot.log_ == [0.1, 0.3])
        old = next(view for view in await w.views("creep") if view.call_id == call_id)
        assert old.text == "replaced by another call of 'creep' (by 'operator')"
