"""What an operator's stop of a robot and the end of all calls are about, and what they leave alone."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls import call_admission
from dimos_streams.bridge.calls.state.call_state import CANCEL_OVERDUE_S
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.module import Module
from dimos_streams.operator.holding import GATE, STOP_ROBOT
from dimos_streams.operator.messages.stop import CancelReport
from dimos_streams.skill import skill
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.bridge.calls.driven_robots import Gripper, Stubborn, driven_robots, of
from tests.bridge.scene import answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]


async def test_an_order_for_one_robot_ends_no_call_of_another() -> None:
    async with driven_robots("robot1", "robot2") as made:
        broker = made.world.broker
        first, second = [
            await broker.call(f"{robot}_follow", {"description": "ann"}, caller="a") for robot in ("robot1", "robot2")
        ]
        await answered(broker, first)
        await answered(broker, second)
        assert (await broker.stops.stop_robot("robot1", "")).calls.ended == (first,)
        sensing = await broker.call("robot1_search", {}, caller="a")
        assert (await broker.cancels.cancel_all("robot1", "")).ended == (sensing,)
        assert (await broker.view(second)).state == "open"


async def test_a_motion_that_a_script_begins_without_the_bridge_is_ended_where_the_robot_is_stopped() -> None:
    async with driven_robots("robot1", "robot2") as made:
        broker = made.world.broker
        await broker.stops.stop_robot("robot1", "wet floor")
        for robot in ("robot1", "robot2"):
            asked = SkillCall(
                utime=clock.utime(),
                call_id=f"of-{robot}",
                module=f"{robot}/worker",
                skill=f"{robot}_follow",
                caller="script",
                arguments_json='{"description": "ann"}',
            )
            made.world.inner.publish(CALLS, encode(asked))
        await until(lambda: broker.ledger.calls.get("of-robot1") and broker.ledger.calls.get("of-robot2"))
        ended = await closed(broker, "of-robot1")
        assert (ended.outcome, ended.text) == (Outcome.CANCELLED, STOPPED)
        assert (await broker.view("of-robot2")).state == "open"


async def test_calls_of_the_bridge_itself_are_none_that_operators_end_or_hear_of() -> None:
    async with scene(worker=False) as world:
        arm, broker = Stubborn(name="arm"), world.broker
        await world.add(arm)
        await world.offered("wave")
        own = await broker.call("wave", {}, caller="a", journalled=False)
        await answered(broker, own)
        assert await broker.cancels.cancel_all("", "") == CancelReport()
        await broker.cancel(own, "enough")
        await asyncio.sleep(2 * CANCEL_OVERDUE_S)
        assert broker.cancels.lingering() == []
        arm.enough.set()
        assert (await closed(broker, own)).outcome is Outcome.CANCELLED


async def test_what_only_holds_something_needs_no_velocity_gate() -> None:
    async with driven_robots("robot1") as made:
        stops = made.world.broker.stops
        await made.world.add(Gripper(**of("arm", "gripper")))
        await made.world.offered("arm_hold_tight")
        assert stops.robots() == {"robot1"}
        assert (await stops.stop_robot("", "")).confirmed


async def test_nobody_hears_of_a_hold_where_other_messages_are() -> None:
    async with scene(worker=False) as world:
        stops, heard = world.broker.stops, list[bytes]()
        channel = channel_name("/robot1/cmd_vel", Twist)
        world.inner.subscribe(channel, lambda _, data: heard.append(data))
        odd = Stubborn(**of("robot1", "gate"))
        odd.report_state({GATE: {"listens": True, "channel": channel, "holds": [STOP_ROBOT], "still": True}})
        await world.add(odd)
        await until(lambda: "robot1" in stops.robots())
        await stops.stop_robot("", "")
        await asyncio.sleep(1.0)
        await stops.release("")
        assert heard == []


class Lock(Module):
    """A robot's door, which operators open and nobody else."""

    @skill(audience="operator")
    async def unlock(self) -> str:
        """Open it."""
        return "open"


async def test_whoever_fills_all_room_keeps_no_operator_from_what_operators_alone_may_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_admission, "_FOR_OTHERS", call_admission._Room(open=1, waiting=9))
    async with scene() as world:
        await world.add(Lock(name="lock"))
        await world.offered("unlock")
        await world.broker.call("patrol", {}, caller="you")
        order = await world.broker.call("unlock", {}, caller="you")
        assert (await closed(world.broker, order)).result == "open"
