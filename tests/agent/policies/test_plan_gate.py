"""The plan gate: motions that need an approved plan, and how long an approval lasts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.policies.gates.base import Allow, Refuse
from dimos_streams.agent.policies.gates.matching.zones import Zone
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.policies.gate_bench import MOVE, GateBench
from tests.agent.policies.gate_inputs import Events, offered, request
from tests.agent.policies.test_zones import SQUARE
from tests.helpers import until


@pytest.mark.virtual_time
async def test_motions_need_a_plan_after_the_second() -> None:
    bench = GateBench()
    motion = {"motion": True}
    for _ in range(2):
        assert isinstance(await bench.review(policy=motion, distance_m=1), Allow)
    blocked = await bench.review(policy=motion, distance_m=1)
    assert isinstance(blocked, Refuse)
    assert not blocked.charged
    assert "create_plan" in blocked.text
    assert "submit_plan" in blocked.text
    assert isinstance(await bench.review("look"), Allow)
    await bench.approved(("move", {"distance_m": 1}), ("move", {"distance_m": 2}))
    assert isinstance(await bench.review(policy=motion, distance_m=3), Refuse)
    assert isinstance(await bench.review("back", policy=motion, distance_m=1), Refuse)
    first = await bench.review(policy=motion, distance_m=1.0)
    assert isinstance(first, Allow)
    assert isinstance(await bench.review(policy=motion, distance_m=1), Refuse)
    first.give_back()
    first.give_back()
    assert isinstance(await bench.review(policy=motion, distance_m=1), Allow)
    assert isinstance(await bench.review(policy=motion, distance_m=1), Refuse)
    assert isinstance(await bench.review(policy=motion, distance_m=2), Allow)


@pytest.mark.parametrize(
    ("most", "why"),
    [
        (0, "because this agent moves the robot by plans only."),
        (1, "because 1 motion of this mission has begun without a plan."),
        (2, "because 2 motions of this mission have begun without a plan."),
    ],
)
@pytest.mark.virtual_time
async def test_a_motion_without_a_plan_is_told_why_it_needs_one(most: int, why: str) -> None:
    bench = GateBench(plan={"motions": most})
    verdicts = [await bench.review(policy={"motion": True}, distance_m=1) for _ in range(most + 1)]
    assert isinstance(verdicts[-1], Refuse)
    assert why in verdicts[-1].text


@pytest.mark.virtual_time
async def test_a_step_of_an_approved_plan_is_asked_about_again_where_the_skill_asks() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    policy = {"motion": True, "approval": "ask"}
    reviewing = asyncio.create_task(bench.review(policy=policy, distance_m=1))
    await until(lambda: bool(bench.approvals.pending()))
    bench.approvals.decide(bench.approvals.pending()[0].id, "reject")
    assert isinstance(await reviewing, Refuse)


@pytest.mark.virtual_time
@pytest.mark.parametrize("text", ["draw #\nerase all", "draw  # erase all", "draw # er\u200base all"])
async def test_a_planned_step_is_made_as_it_was_approved(text: str) -> None:
    """Texts that count as the same may mean something else to the skill, a script's lines for instance."""
    bench, seen = GateBench(plan={"motions": 0}), {"text": "draw # erase all"}
    skill = offered("plot", parameters={"type": "object", "properties": {"text": {"type": "string"}}}, motion=True)
    await bench.approved(("plot", seen))
    verdict = await bench.chain.review(request(skill, text=text))
    assert isinstance(verdict, Allow)
    assert verdict.arguments == seen


@pytest.mark.virtual_time
async def test_a_planned_motion_uses_up_no_free_one_and_missions_count_apart() -> None:
    bench = GateBench(plan={"motions": 1})
    motion = offered(parameters=MOVE, motion=True)
    await bench.approved(("move", {"distance_m": 1}))
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Allow)
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Allow)
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Refuse)
    assert isinstance(await bench.chain.review(request(motion, ("m2",), distance_m=1)), Allow)
    free = GateBench(plan={"motions": None})
    for _ in range(9):
        assert isinstance(await free.chain.review(request(motion, distance_m=1)), Allow)


@pytest.mark.virtual_time
async def test_a_step_is_a_call_of_the_module_that_the_plan_was_approved_for() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    skill = offered(parameters=MOVE, motion=True)
    another = skill.model_copy(update={"module": "another"})
    assert isinstance(await bench.chain.review(request(another, distance_m=1)), Refuse)
    assert isinstance(await bench.chain.review(request(skill, distance_m=1)), Allow)


@pytest.mark.virtual_time
async def test_an_approval_of_a_plan_lapses() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    await asyncio.sleep(3601)
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Refuse)
    await bench.approved(("move", {"distance_m": 1}))
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Allow), "of another plan it holds"


@pytest.mark.virtual_time
async def test_an_approval_of_a_plan_lapses_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    monkeypatch.setattr(clock, "steady", lambda: clock.monotonic() + 8 * 3600)
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Refuse)


@pytest.mark.virtual_time
async def test_a_plan_whose_mission_ends_with_its_approval_is_void_and_can_be_approved_anew() -> None:
    bench = GateBench()
    plan, draft = [bench.plans.create("g", [{"skill": "move", "arguments": {"distance_m": 1}}]) for _ in range(2)]
    task = asyncio.create_task(bench.plans.submit(plan.id, ("m",)))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "approve")
    bench.plans.apply(
        AgentEvent(number=1, utime=0, agent="agent", kind=EventKind.ENDED, missions=("m",))
    )  # before the task that waits wakes up
    assert (await task).state == "void"
    assert draft.state == "draft"
    assert bench.plans.claim_step("m", "move", {"distance_m": 1}, ("m",)) is None
    again = asyncio.create_task(bench.plans.submit(plan.id, ("n",)))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "approve")
    assert (await again).state == "approved"


@pytest.mark.virtual_time
async def test_plans_are_drafts_until_submitted_and_may_be_changed_by_the_operator() -> None:
    bench = GateBench()
    plans, approvals = bench.plans, bench.approvals
    plan = plans.create("g")
    with pytest.raises(SkillError, match="no steps"):
        await plans.submit(plan.id)
    plans.add_steps(plan.id, [{"skill": "move", "arguments": {"distance_m": 1}}])
    with pytest.raises(SkillError, match="step 1"):
        plans.add_steps(plan.id, [{"arguments": {}}])
    task = asyncio.create_task(plans.submit(plan.id))
    await asyncio.sleep(0)
    with pytest.raises(SkillError, match="is submitted"):
        plans.add_steps(plan.id, [{"skill": "move"}])
    (pending,) = approvals.pending()
    without: list[dict[str, Any]] = [{"steps": []}, {"steps": 5}, {}]
    for none in without:
        with pytest.raises(SkillError, match="needs steps"):
            approvals.amend(pending.id, none)
    approvals.decide(pending.id, "approve", {"steps": [{"skill": "move", "arguments": {"distance_m": 0.5}}]})
    assert [step.to_dict() for step in (await task).steps] == [{"skill": "move", "arguments": {"distance_m": 0.5}}]
    rejected = plans.create("h", [{"skill": "move"}])
    task = asyncio.create_task(plans.submit(rejected.id))
    await asyncio.sleep(0)
    approvals.decide(approvals.pending()[0].id, "reject", reason="not today")
    assert "rejected: not today" in (await task).text()
    with pytest.raises(SkillError, match="is rejected, not a draft"):
        await plans.submit(rejected.id)
    with pytest.raises(SkillError, match="did you mean 'plan-1'"):
        plans.get("plan1")


def test_a_plan_has_a_hundred_steps_at_most() -> None:
    plans, step = GateBench().plans, {"skill": "move"}
    with pytest.raises(SkillError, match="100 steps, not 101"):
        plans.create("g", [step] * 101)
    plan = plans.create("g", [step] * 99)
    with pytest.raises(SkillError, match="can have 100 steps"):
        plans.add_steps(plan.id, [step] * 2)
    assert len(plans.add_steps(plan.id, [step]).steps) == 100


@pytest.mark.parametrize("nobody", ["in time", "dropped", "stops", "no room", "no console", "console lost"])
@pytest.mark.virtual_time
async def test_a_plan_on_which_nobody_has_decided_is_a_draft_again(nobody: str) -> None:
    lost = {"on_console_loss": "abort"} if "console" in nobody else {}
    bench = GateBench(approval={"timeout_s": 10, "max_pending": 1, **lost})
    plans, approvals = bench.plans, bench.approvals
    plan = plans.create("g", [{"skill": "move", "arguments": {"distance_m": 1}}])
    others = asyncio.create_task(approvals.ask("drop", {})) if nobody == "no room" else None
    approvals.console(present=nobody != "no console")
    await asyncio.sleep(0)
    task = asyncio.create_task(plans.submit(plan.id, ("m1",)))
    await asyncio.sleep(0)
    if nobody == "dropped":
        approvals.decide(approvals.pending()[0].id, "delete")
    elif nobody == "stops":
        approvals.close()
    approvals.console(present="console" not in nobody)
    why = (await task).reason
    assert why
    assert (plan.state, plan.text().splitlines()[0]) == ("draft", f"Plan plan-1 (g) is draft: {why}")
    assert not any(view["state"] == "rejected" for view in decided(bench.events))
    if others:
        await others
    approvals.console(present=True)
    again = asyncio.create_task(plans.submit(plan.id, ("m1",)))
    await asyncio.sleep(0)
    assert (plan.state, plan.reason) == ("submitted", "")
    approvals.decide(approvals.pending()[0].id, "approve")
    assert (await again).state == "approved"


def decided(events: Events) -> list[dict[str, Any]]:
    return [data["approval"] for kind, data in events.all if kind == "approval_decided"]


@pytest.mark.virtual_time
async def test_a_zone_needs_a_plan_even_for_the_first_motion() -> None:
    bench = GateBench(zones=[Zone(name="lab", polygon=SQUARE)], plan={"motions": None})
    goal = {"x": 2.0, "y": 2.0}
    blocked = await bench.review("go_to", {"motion": True}, **goal)
    assert isinstance(blocked, Refuse)
    assert "'lab'" in blocked.text
    assert not blocked.charged
    await bench.approved(("go_to", goal))
    assert isinstance(await bench.review("go_to", {"motion": True}, **goal), Allow)
    assert isinstance(await bench.review("go_to", {"motion": True}, **goal), Refuse)
    assert isinstance(await bench.review("go_to", {"motion": True}, x=0, y=0), Allow)


@pytest.mark.virtual_time
async def test_a_goal_in_another_frame_than_the_zones_needs_a_plan_wherever_it_is() -> None:
    on_the_map: dict[str, Any] = {"motion": True, "frame": "map"}
    goal = {"x": 9.0, "y": 9.0}
    without = GateBench(plan={"motions": None})
    assert isinstance(await without.review("navigate_to", on_the_map, **goal), Allow)
    bench = GateBench(zones=[Zone(name="lab", polygon=SQUARE)], plan={"motions": None})
    blocked = await bench.review("navigate_to", on_the_map, **goal)
    assert isinstance(blocked, Refuse)
    assert "its goal is in the frame 'map'" in blocked.text
    assert isinstance(await bench.review("back_up", on_the_map, distance_m=-1), Allow)
    await bench.approved(("navigate_to", goal))
    assert isinstance(await bench.review("navigate_to", on_the_map, **goal), Allow)


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_sub_mission_has_no_free_motions_of_its_own() -> None:
    bench = GateBench(plan={"motions": 2})
    skill = offered("move", parameters=MOVE, motion=True)
    verdicts = [
        await bench.chain.review(request(skill, (mission,), distance_m=number))
        for number, mission in enumerate(("m1", "m1/1", "m1/2", "m1"))
    ]
    assert [isinstance(verdict, Allow) for verdict in verdicts] == [True, True, False, False]
