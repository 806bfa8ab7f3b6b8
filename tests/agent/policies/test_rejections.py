"""What an operator has rejected stays rejected: as a free motion, for sub-agents, after a restart."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.policies.gates.base import Allow
from dimos_streams.agent.policies.gates.rejected import RejectedGate
from dimos_streams.agent.policies.rejections import Rejections
from dimos_streams.agent.record.record_files import FOLDER
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.errors import ConflictError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import offered, request
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.stage import Stage
from tests.helpers import until

Calls = list[tuple[str, dict[str, Any]]]
WALK: tuple[str, dict[str, Any]] = ("walk", {"distance_m": 5})
STEPS = [{"skill": "walk", "arguments": {"distance_m": 5.0}}, {"skill": "go_to", "arguments": {"x": 1, "y": 2}}]
PLAN: tuple[str, dict[str, Any]] = ("create_plan", {"goal": "away", "steps": STEPS})


def shown(made: Stage) -> list[str]:
    return [entry.text for entry in made.entries("tool")]


@pytest.mark.feature("B8", "C5")
@pytest.mark.virtual_time
async def test_a_rejected_plan_binds_its_calls_for_the_rest_of_the_mission() -> None:
    brain = Brain(
        [PLAN, ("submit_plan", {"plan": "plan-1"})],
        [WALK, ("go_to", {"y": 2, "x": 1})],  # identical, and free motions
        *[[WALK]] * 3,  # refused, and charged to nobody
        [("walk", {"distance_m": 4})],
        "ok",
        [WALK],
        "gone",
    )
    config: dict[str, Any] = {"plan": {"motions": 2}, "repetition": {"stop_at": None}}
    config["limits"] = {"max_consecutive_errors": 2}
    async with robot_stage(brain, **config) as (made, robot):
        said = await made.say("go")
        await decide(made, "reject", reason="the street is wet")
        assert (await said.result())["text"] == "ok"
        assert all("has rejected" in text and "the street is wet" in text for text in shown(made)[2:7])
        assert robot.log_ == ["walk 4"]
        assert (await (await made.say("you may walk 5 m now")).result())["text"] == "gone"
        assert robot.log_ == ["walk 4", "walk 5"]


@pytest.mark.slow
@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_what_is_approved_after_all_may_be_made() -> None:
    submit: Calls = [("submit_plan", {"plan": "plan-1"})]
    again: Calls = [("create_plan", {"goal": "g", "steps": STEPS[:1]}), ("submit_plan", {"plan": "plan-2"})]
    brain = Brain([PLAN], submit, again, [WALK, ("go_to", {"x": 1, "y": 2})], "ok")
    async with robot_stage(brain, plan={"motions": 2}) as (made, robot):
        said = await made.say("go")
        await decide(made, "reject")
        await until(made.agent.core.gate_state.approvals.pending)
        await decide(made, "approve")
        await said.result()
        assert robot.log_ == ["walk 5"]
        assert "has rejected go_to(x=1, y=2) in this mission." in shown(made)[-1]


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_a_rejected_call_is_rejected_for_sub_agents_too() -> None:
    drop = ("drop", {"what": "a"})
    brain = Brain([drop], [("delegate", {"agent": "porter", "task": "drop it"})], "ok", porter=[[drop], "can't"])
    agents = {"porter": {"description": "carries", "prompt": "porter"}}
    async with robot_stage(brain, agents=agents) as (made, robot):
        said = await made.say("go")
        await decide(made, "reject", reason="it is fragile")
        await said.result()
        results = [event.data for event in made.agent.core.events.after(0) if event.kind == "result"]
        (of_porter,) = [result for result in results if result["skill"] == "drop" and result.get("sub")]
        assert "it is fragile" in of_porter["text"]
        assert robot.log_ == []


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_a_rejection_outlives_the_process(tmp_path: Path) -> None:
    world = LineWorld()
    config: dict[str, Any] = {"approval": {"rules": [{"skill": "move", "arguments": {"by": ">2"}}]}}
    first = FunctionModel(in_turn(asks(("follow", {}), ("move", {"by": 3})), says("I wait")))
    async with world.with_model(first, tmp_path, **config) as agent:
        await agent.say("go")
        await until(agent.core.gate_state.approvals.pending)
        agent.core.gate_state.approvals.decide(agent.core.gate_state.approvals.pending()[0].id, "reject", reason="no")
        await until(lambda: len(first.requests) == 2)
        await asyncio.sleep(1)
        await agent.leave()
        # The successor would let it pass: its rules ask nobody.
        second = FunctionModel(in_turn(asks(("move", {"by": 3})), says("then not")))
        async with world.with_model(second, tmp_path) as successor:
            world.released.set()
            await until(lambda: not successor.core.loop.missions)
            assert "the operator has rejected move(by=3)" in successor.data("result")[-1]["text"]
            assert world.log == ["follow ended"]


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_the_rejection_of_a_sub_agents_call_is_in_the_record_of_the_mission(tmp_path: Path) -> None:
    brain = Brain(
        [("delegate", {"agent": "porter", "task": "drop it"})], "ok", porter=[[("drop", {"what": "a"})], "no"]
    )
    agents = {"porter": {"description": "carries", "prompt": "porter"}}
    async with robot_stage(brain, run_dir=tmp_path, agents=agents) as (made, _):
        said = await made.say("go")
        await decide(made, "reject", reason="it is fragile")
        await said.result()
    found = read_resumption(tmp_path / FOLDER, "agent")
    assert found is not None
    known = Rejections()
    for event in found.events:
        known.apply(event)
    assert known.why("drop", {"what": "a"}, [said.id]) == "it is fragile"


def decided(
    state: str, id: str = "a", *, mission: str = "m", module: str = "", skill: str = "walk", **arguments: Any
) -> AgentEvent:
    view = {"id": id, "skill": skill, "module": module, "arguments": arguments, "state": state}
    kind = "approval_created" if state == "pending" else "approval_decided"
    return AgentEvent(
        number=1,
        utime=1,
        agent="a",
        kind=kind,
        missions=(mission,) if mission else (),
        data={"approval": view, "why": "no"},
    )


def test_which_calls_are_rejected() -> None:
    book = Rejections()
    for event in (decided("pending", by=1), decided("rejected", by=2), decided("timed_out", "b", by=3)):
        book.apply(event)
    assert [book.why("walk", {"by": by}, ["m"]) for by in (1, 2.0, 3)] == ["no", "no", None]
    assert book.why("walk", {"by": 1}, ["x", "m/1/2"]) == "no"
    assert book.why("walk", {"by": 1}, ["mm"]) is None
    assert book.why("run", {"by": 1}, ["m"]) is None
    book.apply(decided("approved", "c", mission="m/7", by=1))
    assert [book.why("walk", {"by": by}, ["m"]) for by in (1, 2)] == [None, "no"]
    book.apply(decided("rejected", "d", mission="", by=9))
    assert book.why("walk", {"by": 9}, []) is None


@pytest.mark.virtual_time
async def test_what_is_rejected_while_it_waits_does_not_begin() -> None:
    book = Rejections()
    allowed = await RejectedGate(book).review(request(offered("walk"), missions=("m",), by=1))
    assert isinstance(allowed, Allow)
    assert await allowed.last_look() is None
    book.apply(decided("rejected", by=1))
    refusal = await allowed.last_look()
    assert refusal is not None
    assert "the operator has rejected walk(by=1) in this mission: no" in refusal.text


def test_a_step_that_was_taken_out_of_a_plan_is_rejected() -> None:
    """A model that makes it alone would do what the operator has said no to."""
    book, steps = Rejections(), [{"skill": "walk", "arguments": {"by": by}} for by in (1, 2, 3)]
    book.apply(decided("pending", skill="submit_plan", steps=steps))
    book.apply(decided("approved", skill="submit_plan", steps=[steps[1], {"skill": "walk", "arguments": {"by": 4}}]))
    whys = [book.why("walk", {"by": by}, ["m"]) for by in (1, 2, 3, 4)]
    assert whys == ["the operator has taken this step out of the plan", None, whys[0], None]
    assert book.why("submit_plan", {"steps": steps}, ["m"]) is None, "it may be asked for again"


def test_a_skill_that_is_called_like_an_agents_own_tool_has_no_steps() -> None:
    """Its arguments are the model's: an approval of it would take back what the operator has rejected."""
    book, steps = Rejections(), [{"skill": "walk", "arguments": {"by": by}} for by in (1, 2)]
    book.apply(decided("rejected", "b", by=1))
    for state, handed_in in (("pending", steps), ("approved", steps[:1])):
        book.apply(decided(state, module="office", skill="submit_plan", steps=handed_in))
    assert [book.why("walk", {"by": by}, ["m"]) for by in (1, 2)] == ["no", None]
    book.apply(decided("rejected", "c", module="office", skill="submit_plan", steps=steps[1:]))
    assert book.why("walk", {"by": 2}, ["m"]) is None


def test_a_step_that_was_taken_out_is_rejected_whatever_its_skill_is_called() -> None:
    book, step = Rejections(), {"skill": "submit_plan", "arguments": {"to": "the office"}}
    for state, steps in (("pending", [step, {"skill": "walk"}]), ("approved", [{"skill": "walk"}])):
        book.apply(decided(state, skill="submit_plan", steps=steps))
    assert book.why("submit_plan", {"to": "the office"}, ["m"]) is not None


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("reason", "why"),
    [("deadline", "deadline (it took longer than it may)"), ("aborted", "aborted (the operator said 'stop')")],
)
async def test_who_decides_too_late_is_told_why_nobody_waits_for_it(reason: str, why: str) -> None:
    async with LineWorld().agent(asks(("move", {"by": 3})), approval={"rules": [{"skill": "move"}]}) as agent:
        mission = await agent.say("go")
        approvals = agent.core.gate_state.approvals
        await until(approvals.pending)
        (asked,) = approvals.pending()
        if reason == "aborted":
            await agent.core.loop.abort("the operator said 'stop'")
        else:
            mission.end(reason)
        await until(lambda: not approvals.pending())
        gone = rf"is deleted already \(nobody waits for it any more: the mission did not complete: {re.escape(why)}\)"
        with pytest.raises(ConflictError, match=gone):
            approvals.decide(asked.id, "approve")
