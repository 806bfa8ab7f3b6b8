"""Two bridges on one bus: each looks after the reviews that it has asked for itself, and numbers its own orders."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import CallRejectedError, SkillError
from dimos_streams.operator.robot_orders import newest_order
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import LookoutWorld, lookout_world, round_with
from tests.helpers import until


async def pending(w: LookoutWorld) -> list[str]:
    await until(w.agent.core.gate_state.approvals.pending)
    return [view.id for view in w.agent.core.gate_state.approvals.pending()]


@pytest.mark.feature("B3")
@pytest.mark.parametrize("name", ["bridge2", "robot1/bridge"])
@pytest.mark.virtual_time
async def test_bridges_leave_each_others_reviews_alone(name: str) -> None:
    async with lookout_world(Brain(round_with("drop", what="bag"))) as w:
        await w.add(Bridge({"http": False}, name=name, context=w.bridge.context))
        await asyncio.sleep(3)
        await w.say()
        asked = await pending(w)
        await asyncio.sleep(10)
        assert await pending(w) == asked, "nobody has ended it"
        assert {view.state for view in await w.views("review_call")} == {"open"}
        await w.operator("decide", approval=asked[0], decision="approve")
        assert (await w.lookout_closed("round")).outcome is Outcome.COMPLETED
        await asyncio.sleep(3)
        assert w.robot.log_ == ["drop bag"]
        assert {view.state for view in await w.views("review_call")} == {"closed"}
        with pytest.raises(CallRejectedError, match=f"'bridge:{name}' is the name of a bridge itself"):
            await w.bridge.broker.call("drop", {"what": "a"}, caller=f"bridge:{name}")


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_the_orders_of_another_bridge_make_no_refused_call_a_sign_of_a_stop() -> None:
    async with lookout_world(Brain()) as w:
        await w.add(another := Bridge({"http": False}, name="bridge2", context=w.bridge.context))
        await until(lambda: another.broker.directory.module("agent"))
        for stops in (w.bridge.broker.stops, another.broker.stops):
            await asyncio.gather(stops.stop_robot("", ""), stops.release(""))
            await asyncio.sleep(1)  # so that the numbers of the second are higher
        own, others = (newest_order(bridge.broker.stops.orders, "") for bridge in (w.bridge, another))
        assert own < others
        known, heard = w.agent.core.oversight.robot_stops, list[int]()
        await until(lambda: known.newest == others)
        known.ordered.add(heard.extend)
        known.catch_up(await w.bridge.broker.robot_orders())  # as after each call that its bridge refuses
        await asyncio.sleep(3)  # both bridges are heard again
        assert heard == []
        known.catch_up({"": others + 1})
        await asyncio.sleep(3)
        assert heard == [others + 1], "and what was learnt so is not forgotten by an older heartbeat"
        assert known.newest == others + 1


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_successor_asks_only_in_missions_from_before_the_orders_of_other_bridges_and_to_other_agents(
    tmp_path: Path,
) -> None:
    async with lookout_world(Brain([("follow", {})], "I wait"), run_dir=tmp_path / "1") as w:
        await w.add(another := Bridge({"http": False}, name="bridge2", context=w.bridge.context))
        await w.add(other := Agent(name="other", context=replace(w.bridge.context, run_dir=None)))
        with pytest.raises(SkillError, match="stopped: no call ran"):  # there is no gate that could confirm it
            await other.core.operators.stop_order.carry_out("s1", "stop")
        await asyncio.gather(another.broker.stops.stop_robot("", ""), another.broker.stops.release(""))
        await until(lambda: "follow" in {info.name for _, info in another.broker.directory.skills()})
        said = {other.core.oversight.robot_stops.said, newest_order(another.broker.stops.orders, "")}
        await until(lambda: w.agent.core.oversight.robot_stops.numbers == said)
        begun = w.agent.core.missions.begin("m1", "follow him")
        await w.agent.core.queue.put(OperatorInput("follow him", (begun,)))
        await w.view("follow", lambda view: view.answer)
        await w.kill_agent(Brain(), tmp_path / "2")
        core = w.agent.core
        await until(lambda: core.oversight.robot_stops.numbers == said)
        assert [core.gate_state.stopped.stops(which) > 0 for which in (("m1",), ())] == [False, True]
        await another.broker.stops.stop_robot("", "")
        await until(lambda: core.gate_state.stopped.stops(("m1",)))
