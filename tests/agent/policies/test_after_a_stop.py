"""After a stop of the robot nothing moves it in a mission from before that nobody has asked for since."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.control import heard_stops
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.module import Agent
from dimos_streams.agent.policies.gates.base import Allow, Refuse, Verdict
from dimos_streams.agent.policies.stopped_missions import OF_NONE, StoppedMissions
from dimos_streams.errors import ConflictError, SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.tool_stream.family import child_id
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_bench import MOVE, GateBench
from tests.agent.policies.gate_inputs import offered, request
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.bridge.scene import event
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("B8", "K5")]

WALK: list[tuple[str, dict[str, Any]]] = [("walk", {"distance_m": 1})]
PLAN: list[tuple[str, dict[str, Any]]] = [
    ("create_plan", {"goal": "walk", "steps": [{"skill": "walk", "arguments": {"distance_m": 1}}]}),
    ("submit_plan", {"plan": "plan-1"}),
]
NOTE = "The robot was stopped after this was asked for: whatever moves it here is to be approved before"
SINCE = "an operator has stopped the robot since this was asked for"


@pytest.mark.parametrize(("planned", "decision"), [(False, "approve"), (True, "reject")], ids=["free", "planned"])
async def test_a_model_that_thinks_through_a_stop_and_its_release_has_the_operator_asked(
    planned: bool, decision: str
) -> None:
    released = asyncio.Event()

    async def think(request: Any) -> Any:
        await released.wait()
        return WALK

    brain = Brain(*([PLAN] if planned else []), think, "well")
    async with robot_stage(brain) as (made, robot):
        await made.harness.add(VelocityGate(name="gate"), unwired=("scan",))
        said = await made.say("walk")
        if planned:
            await decide(made, "approve")
        await until(lambda: len(brain.requests) == 1 + planned)
        stops = made.bridge.broker.stops
        assert (await stops.stop_robot("", "a child")).confirmed
        await stops.release("")
        released.set()
        asked = await decide(made, decision)
        assert (asked["skill"], asked["reason"]) == ("walk", f"{SINCE}; for 'walk'")
        await said.closed()
        assert robot.log_ == (["walk 1"] if decision == "approve" else [])


async def test_a_stop_is_heard_of_that_is_released_at_once_and_of_a_robot_that_has_no_gate() -> None:
    released = asyncio.Event()

    async def think(request: Any) -> Any:
        await released.wait()
        return WALK

    brain = Brain(think, "well", WALK, "well")
    async with robot_stage(brain) as (made, robot):
        said = await made.say("walk")
        await until(lambda: brain.requests)
        stops = made.bridge.broker.stops
        stopping = asyncio.create_task(stops.stop_robot("", ""))
        await until(lambda: stops.stopped().stops)
        await stops.release("")
        await stopping
        released.set()
        assert (await decide(made, "reject"))["reason"] == f"{SINCE}; for 'walk'"
        await said.closed()
        assert robot.log_ == []
        await (await made.say("walk now")).closed()
        assert robot.log_ == ["walk 1"], "what is said since is not asked about"


async def test_what_was_on_its_way_to_the_bridge_through_a_stop_and_its_release_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brain = Brain(WALK, "well")
    async with robot_stage(brain) as (made, robot):
        broker, began = made.bridge.broker, made.bridge.broker.call

        async def late(skill: str, arguments: dict[str, Any], **terms: Any) -> str:
            if skill == "walk":
                await asyncio.gather(broker.stops.stop_robot("", ""), broker.stops.release(""))
            return await began(skill, arguments, **terms)

        monkeypatch.setattr(broker, "call", late)
        said = await made.say("walk")
        await said.closed()
        assert "'walk' does not begin: an operator has stopped the robot" in made.entries("tool")[-1].text
        assert robot.log_ == []


async def test_an_agent_that_does_not_hear_its_bridge_learns_of_a_stop_when_a_call_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brain = Brain(WALK, WALK, "well", WALK, "well")
    async with robot_stage(brain) as (made, robot):
        monkeypatch.setattr(heard_stops, "ORDERS", "unheard")
        stops = made.bridge.broker.stops
        await asyncio.gather(stops.stop_robot("", ""), stops.release(""))
        said = await made.say("walk")
        assert (await decide(made, "reject"))["reason"] == f"{SINCE}; for 'walk'"
        await said.closed()
        assert robot.log_ == []
        await (await made.say("walk now")).closed()
        assert robot.log_ == ["walk 1"]


async def test_what_was_asked_for_before_stop_was_said_to_another_agent_of_the_robot_is_to_be_approved() -> None:
    said_stop = asyncio.Event()

    async def think(request: Any) -> Any:
        await said_stop.wait()
        return WALK

    brain = Brain(think, "well")
    async with robot_stage(brain) as (made, robot):
        other = Agent(name="other", context=made.agent.context)
        await made.harness.add(other)
        mission = made.agent.core.missions.begin("m1", "walk")
        await made.agent.core.queue.put(OperatorInput("walk", (mission,)))
        await until(lambda: brain.requests)
        with pytest.raises(SkillError, match="stopped: no call ran"):  # there is no gate that could confirm it
            await other.core.operators.stop_order.carry_out("s1", "stop")
        said_stop.set()
        approvals = made.agent.core.gate_state.approvals
        await until(approvals.pending)
        (asked,) = approvals.pending()
        assert asked.reason == f"{SINCE}; for 'walk'"
        approvals.decide(asked.id, "reject")
        await until(lambda: mission.over)
        assert robot.log_ == []


@pytest.mark.parametrize(
    ("missions", "policy", "asks"),
    [
        (("m1",), {"motion": True}, True),
        (("m1/helper",), {"resources": ("arm",)}, True),
        ((), {"motion": True}, True),
        (("m1",), {}, False),
        (("m2",), {"motion": True}, False),
        (("m1", "m2"), {"motion": True}, True),
    ],
    ids=[
        "motion",
        "sub-mission that holds an arm",
        "of no mission",
        "no motion",
        "said since",
        "of a turn that takes up both",
    ],
)
async def test_only_what_moves_the_robot_for_a_mission_from_before_is_asked_about(
    missions: tuple[str, ...], policy: dict[str, Any], asks: bool
) -> None:
    bench = GateBench(plan={"motions": None}, approval={"rules": [{"skill": "move", "action": "allow"}]})
    bench.gate_state.robot_stopped(("m1", OF_NONE))
    call = request(offered("move", parameters=MOVE, **policy), missions, distance_m=1)
    review = asyncio.create_task(bench.chain.review(call))
    await asyncio.sleep(0)
    assert [view.reason for view in bench.approvals.pending()] == [SINCE] * asks
    for view in bench.approvals.pending():
        bench.approvals.decide(view.id, "approve")
    assert isinstance(await review, Allow)


async def test_what_is_planned_since_the_stop_is_not_asked_about_twice() -> None:
    bench = GateBench(plan={"motions": 0})
    bench.gate_state.robot_stopped(("m1",))
    await bench.approved(("move", {"distance_m": 1}))
    assert isinstance(await bench.review("move", {"motion": True}, distance_m=1), Allow)


async def test_a_skill_that_is_called_as_the_way_to_hand_in_a_plan_keeps_no_plan_valid_after_a_stop() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    asking = asyncio.create_task(bench.approvals.ask("submit_plan", {"plan": "plan-1"}, module="office"))
    await until(bench.approvals.pending)
    bench.gate_state.robot_stopped(("m1",))
    assert bench.plans.get("plan-1").state == "void"
    bench.approvals.close()
    await asking


async def stopped_before_it_begins(bench: GateBench, allowed: Verdict) -> None:
    """What was allowed is refused once the robot is stopped."""
    assert isinstance(allowed, Allow)
    assert await allowed.last_look() is None
    bench.gate_state.robot_stopped(("m1",))
    refusal = await allowed.last_look()
    assert isinstance(refusal, Refuse)
    assert "an operator has stopped the robot since it was asked for" in refusal.text


async def test_what_was_allowed_and_has_not_begun_does_not_begin_after_a_stop() -> None:
    bench = GateBench(plan={"motions": None})
    for _ in range(2):
        call = request(offered("move", parameters=MOVE, motion=True), distance_m=1)
        review = asyncio.create_task(bench.chain.review(call))
        await asyncio.sleep(0)
        for view in bench.approvals.pending():
            bench.approvals.decide(view.id, "approve")
        await stopped_before_it_begins(bench, await review)


async def test_a_step_that_an_operator_has_changed_and_that_has_not_begun_does_not_begin_after_a_stop() -> None:
    bench = GateBench(plan={"motions": 0}, approval={"rules": [{"skill": "move"}]})
    await bench.approved(("move", {"distance_m": 1}))
    review = asyncio.create_task(bench.review("move", {"motion": True}, distance_m=1))
    await until(bench.approvals.pending)
    (view,) = bench.approvals.pending()
    bench.approvals.decide(view.id, "approve", {"distance_m": 2})
    await stopped_before_it_begins(bench, await review)


async def test_what_is_approved_while_the_robot_stands_is_asked_about_again_after_the_release() -> None:
    brain = Brain([("follow", {}), *PLAN], "I wait", WALK, "well")
    async with robot_stage(brain) as (made, robot):
        await made.harness.add(VelocityGate(name="gate"), unwired=("scan",))
        stops = made.bridge.broker.stops
        assert (await stops.stop_robot("", "a child")).confirmed
        said = await made.say("walk")
        await decide(made, "approve")
        await made.until("assistant", "I wait")
        plan = made.agent.core.gate_state.plans.get("plan-1")
        assert plan.state == "approved"
        await stops.release("")
        await until(lambda: plan.state == "void")
        robot.done.set()  # what its mission waits for
        assert (await decide(made, "reject"))["skill"] == "walk"
        await said.closed()
        assert robot.log_ == []


async def test_an_approval_from_before_a_stop_lets_nothing_begin_though_its_call_never_ran() -> None:
    bench = GateBench()
    ids = []
    for number, decision in enumerate(("approve", "reject", "approve")):
        asking = asyncio.create_task(bench.approvals.ask("drop", {"n": number % 2}, missions=("m1",)))
        await asyncio.sleep(0)
        ids += [view.id for view in bench.approvals.pending()]
        for view in bench.approvals.pending():
            bench.approvals.decide(view.id, "approve" if decision == "approve" else "reject")
        assert (await asking).rejected is (decision == "reject")
        bench.gate_state.robot_stopped(("m1",))
    assert len(ids) == 3, "the call that was approved before the stop is asked about again"
    assert (await bench.approvals.ask("drop", {"n": 1}, missions=("m1",))).rejected
    with pytest.raises(ConflictError):
        bench.approvals.decide(ids[0], "reject")


async def test_a_mission_hears_also_of_the_stop_of_a_part_of_its_call() -> None:
    async with LineWorld().agent(asks(("follow", {})), says("I wait")) as agent:
        mission = await agent.say("go")
        calls = agent.core.calls
        await until(lambda: calls.known.open)
        part = child_id(calls.known.open[0].call_id, 1)
        stopped = agent.core.gate_state.stopped
        for text, stops in (("enough", 0), (f"{STOPPED}: wait", 1)):
            close = event(2, "close", call_id=part, text=text, data={"outcome": "cancelled"})
            await calls.incoming.observe(close)
            assert stopped.stops((mission.id,)) == stops


def test_a_successor_knows_the_missions_of_which_a_stop_has_ended_a_call() -> None:
    stopped = StoppedMissions(lambda *_, **__: None)
    close = event(9, "close", text=f"{STOPPED}: wait", data={"outcome": "cancelled"})
    data = {"text": "", "skill": "walk", "event": close.to_dict()}
    stopped.restore(AgentEvent(number=1, utime=1, agent="a", kind="update", missions=("m1",), data=data))
    assert (stopped.stops(("m1/sub",)), stopped.stops(("m2",)), stopped.stops(())) == (1, 0, 0)


async def test_a_successor_knows_the_missions_that_a_stop_came_after_though_it_ended_no_call_of_them(
    tmp_path: Path,
) -> None:
    world, before = LineWorld(), FunctionModel(in_turn(asks(("follow", {})), says("I wait")))
    async with world.with_model(before, tmp_path) as agent:
        await agent.say("go")
        await until(lambda: len(before.requests) == 2)
        stops = agent.core.oversight.robot_stops
        for _ in ("stopped", "released"):
            stops.gates_changed.notify()
        assert [note["text"] for note in agent.data("note")] == [NOTE], "once for a mission"
        await agent.leave()
    again = FunctionModel(in_turn(asks(("move", {"by": 3})), says("then not")))
    async with world.with_model(again, tmp_path, plan={"motions": 2}) as successor:
        approvals = successor.core.gate_state.approvals
        (mission,) = successor.core.loop.missions.values()
        world.released.set()
        await until(approvals.pending)
        (asked,) = approvals.pending()
        assert asked.reason.startswith(SINCE)
        approvals.decide(asked.id, "reject")
        await successor.over(mission)
    assert "move 3" not in world.log


@pytest.mark.parametrize("orders", [{"": 7}, {"": 7, "robot1": 9}], ids=["heard", "missed"])
async def test_a_successor_learns_of_the_orders_that_came_while_the_agent_was_down(
    tmp_path: Path, orders: dict[str, int]
) -> None:
    world, before = LineWorld(), FunctionModel(in_turn(asks(("follow", {})), says("I wait")))
    world.bridge.orders = {"": 7}
    async with world.with_model(before, tmp_path) as agent:
        await agent.say("go")
        await until(lambda: len(before.requests) == 2)
        await agent.leave()
    world.bridge.orders = orders
    again = FunctionModel(in_turn(asks(("move", {"by": 3})), says("well")))
    async with world.with_model(again, tmp_path, plan={"motions": 2}) as successor:
        approvals, missed = successor.core.gate_state.approvals, len(orders) - 1
        (mission,) = successor.core.loop.missions.values()
        stopped = successor.core.gate_state.stopped
        assert [stopped.stops(which) for which in ((mission.id,), ())] == [missed, 1]
        world.released.set()
        await until(lambda: approvals.pending() or mission.over)
        for asked in approvals.pending():
            assert asked.reason.startswith(SINCE)
            approvals.decide(asked.id, "reject")
        await successor.over(mission)
    assert ("move 3" in world.log) is not bool(missed)


@pytest.mark.parametrize("stops", [("stop",), ("stop", "stop!")])
async def test_a_successor_tells_other_agents_of_the_stop_that_was_said_to_its_predecessor(
    tmp_path: Path, stops: tuple[str, ...]
) -> None:
    """The newest one, if it was said while the one before was carried out."""
    world = LineWorld()
    async with world.with_model(FunctionModel(in_turn()), tmp_path) as agent:
        order = agent.core.operators.stop_order
        with contextlib.suppress(SkillError):  # there is no gate that could confirm it
            await asyncio.gather(*(order.carry_out(text, text) for text in stops))
        said = agent.core.oversight.robot_stops.said
        await agent.core.loop.abort("an abort that is no stop")
        await agent.leave()
        async with world.with_model(FunctionModel(in_turn()), tmp_path) as successor:
            assert successor.core.oversight.robot_stops.said == said > NO_ORDER
