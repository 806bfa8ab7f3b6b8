"""The operator's last word: stopped robots stand still, whoever commands, until an operator releases them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.hold_channels import is_hold_channel
from dimos_streams.errors import CallRejectedError, SkillError, UnknownRobotError
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.module import Module
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import HOLD_PERIOD_S, STOP_ROBOT
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.protocol.close_data import STOPPED, TO_END
from tests.bridge.calls.driven_robots import Gripper, Stubborn, StubbornConfig, driven_robots, of
from tests.bridge.scene import Worker, answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]


@pytest.mark.slow
async def test_every_robot_stands_until_it_is_released_whoever_commands() -> None:
    async with driven_robots("robot1", "robot2") as made:
        broker = made.world.broker
        moving = await broker.call("robot1_follow", {"description": "ann"}, caller="agent")
        sensing = await broker.call("robot2_search", {}, caller="agent")
        await answered(broker, moving)
        report = await broker.stops.stop_robot("", "a child on the floor")
        assert report.confirmed, report
        assert report.held == ("robot1/gate", "robot2/gate")
        assert report.calls.ended == (moving,)
        assert (await broker.view(moving)).outcome is Outcome.CANCELLED
        assert (await broker.view(sensing)).state == "open", "it does not move anything"

        joystick = asyncio.create_task(made.drive("/robot1/teleop_vel"))
        for _ in range(20):
            await asyncio.sleep(0.25)
            assert made.passed == {"robot1": 0.0, "robot2": 0.0}
        with pytest.raises(CallRejectedError, match=r"an operator has stopped \(a child on the floor\)"):
            await broker.call("robot1_follow", {"description": "ann"}, caller="agent")

        released = await broker.stops.release("")
        assert released.changed
        await until(lambda: made.passed["robot1"] > 0.3 and made.passed["robot2"] > 0.3, 2.0)
        joystick.cancel()
        await answered(broker, await broker.call("robot1_follow", {"description": "ann"}, caller="agent"))
        assert not (await broker.stops.release("")).changed


@pytest.mark.feature("F6")
async def test_only_a_stop_of_the_robot_is_the_reason_that_says_so() -> None:
    async with scene() as world:
        broker = world.broker
        call = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call)
        await broker.cancel(call, f"{STOPPED}: do not drive again")
        assert await broker.wait(call, "close", 5.0)
        view = await broker.view(call)
        assert (view.outcome, view.text) == (Outcome.CANCELLED, f"somebody said: {STOPPED}: do not drive again")


async def test_a_call_that_was_ending_anyway_says_that_the_robot_was_stopped() -> None:
    async with scene() as world:
        arm, broker = Stubborn(name="arm"), world.broker
        await world.add(arm)
        await world.offered("wave")
        waving = await broker.call("wave", {}, caller="agent")
        await answered(broker, waving)
        await broker.cancel(waving, "the agent wants it to end")
        await broker.stops.stop_robot("", "gas leak")
        arm.enough.set()
        assert (await closed(broker, waving)).outcome is Outcome.CANCELLED
        assert (await broker.view(waving)).text.startswith(f"{STOPPED}: gas leak")


@pytest.mark.parametrize("becomes", [Outcome.FAILED, Outcome.LOST])
async def test_a_call_that_fails_or_is_lost_when_a_stop_ends_it_says_that_the_robot_was_stopped(
    becomes: Outcome,
) -> None:
    async with scene(worker=False) as world:
        legs, broker = Shaky(name="legs"), world.broker
        process = await world.add(legs)
        await world.offered("kneel")
        kneeling = await broker.call("kneel", {}, caller="agent")
        await answered(broker, kneeling)
        process.bus.partitioned = becomes is Outcome.LOST
        await broker.stops.stop_robot("", "gas leak")
        assert (await closed(broker, kneeling)).outcome is becomes
        close = last_event(broker.ledger.calls.get(kneeling))
        assert close.data[TO_END] == f"{STOPPED}: gas leak"
        assert becomes is Outcome.LOST or close.text == f"the knee is stuck; it was to end: {STOPPED}: gas leak"


def last_event(call: CallState | None) -> ToolEvent:
    assert call is not None
    assert call.last is not None
    return call.last


class Shaky(Module):
    """Legs that fail at their end."""

    config: StubbornConfig

    @skill(motion=True)
    async def kneel(self, call: Call) -> None:
        """Kneel."""
        try:
            await call.update("kneeling")
            await asyncio.Event().wait()
        finally:
            raise SkillError("the knee is stuck")


async def test_the_log_has_each_stop_and_release_also_where_nothing_moved(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dimos_streams.bridge.calls.stops")
    async with scene() as world:
        await world.broker.stops.stop_robot("", "gas leak")
        await world.broker.stops.release("")
    said = ["every robot is stopped by an operator: gas leak", "every robot is released by an operator"]
    assert [record.message for record in caplog.records] == said


async def test_one_robot_of_two() -> None:
    async with driven_robots("robot1", "robot2") as made:
        stops = made.world.broker.stops
        report = await stops.stop_robot("robot1", "")
        assert (report.confirmed, report.held) == (True, ("robot1/gate",))
        await asyncio.sleep(1.0)
        assert made.passed["robot1"] == 0.0
        assert made.passed["robot2"] > 0.3
        with pytest.raises(
            UnknownRobotError, match=r"no robot is called 'robot3'; did you mean .* \(robots: robot1, robot2\)"
        ):
            await stops.stop_robot("robot3", "")

        await stops.stop_robot("", "")
        await stops.release("robot2")
        await until(lambda: made.passed["robot2"] > 0.3, 2.0)
        assert made.passed["robot1"] == 0.0, "the order for every robot still counts for it"


async def test_a_bridge_that_has_heard_nobody_yet_stops_the_robot_that_is_named() -> None:
    async with driven_robots("robot1") as made:
        await made.world.kill_bridge()
        await made.world.start_bridge()
        broker = made.world.broker
        assert broker.stops.robots() == set()
        report = await broker.stops.stop_robot("robot1", "")
        assert (report.confirmed, report.held) == (True, ("robot1/gate",))
        await made.world.kill_bridge()
        await made.world.start_bridge()
        await made.world.broker.cancels.cancel_all("robot1", "")
        with pytest.raises(UnknownRobotError):
            await made.world.broker.stops.stop_robot("robot3", "")


@pytest.mark.slow
async def test_it_outlives_the_bridge(tmp_path: Path) -> None:
    async with driven_robots("robot1", journal=tmp_path / "journal.sqlite") as made:
        world = made.world
        assert (await world.broker.stops.stop_robot("robot1", "wet floor")).confirmed
        await world.kill_bridge()
        await asyncio.sleep(30.0)
        assert made.passed["robot1"] == 0.0, "the gate holds without a bridge"
        await world.start_bridge()
        await world.offered("robot1_follow")
        await asyncio.sleep(100.0)
        assert made.passed["robot1"] == 0.0, "and for as long as one lives"
        (stop,) = world.broker.stops.stopped().stops
        assert (stop.robot, stop.reason) == ("robot1", "wet floor")
        with pytest.raises(CallRejectedError, match="wet floor"):
            await world.broker.call("robot1_follow", {"description": "ann"}, caller="agent")
        await world.broker.stops.release("robot1")
        await until(lambda: made.passed["robot1"] > 0.3, 2.0)

        (tmp_path / "journal.stops.json").write_text("{")
        await world.kill_bridge()
        await world.start_bridge()
        await until(lambda: made.passed["robot1"] == 0.0, 2.0)
        (stop,) = world.broker.stops.stopped().stops
        assert (stop.robot, "can't be read" in stop.reason) == ("", True)


async def test_what_watches_modules_that_are_gone_is_no_motion_that_a_stop_ends() -> None:
    async with scene(worker=False) as world:
        watching = CallState(call_id="c1", skill="gone", module="gone", caller="bridge", journalled=False)
        unknown = CallState(call_id="c2", skill="gone", module="gone", caller="agent")
        setting = CallState(call_id="c3", skill=SET, module="gone", caller="bridge")
        for call in (watching, unknown, setting):
            world.broker.ledger.begin(call)
        report = await world.broker.stops.stop_robot("", "")
        assert report.calls.ended + tuple(call.call_id for call in report.calls.going_on) == ("c2",)


async def test_each_robot_is_held_for_the_reason_why_it_was_stopped() -> None:
    async with scene(worker=False) as world:
        process, heard = await world.add(), dict[str, str]()
        listens = {"robot1": "/robot1/hold", "robot2": "/shared/hold"}
        for name, topic in listens.items():
            await process.host.start(VelocityGate(name=f"{name}/gate"), {"hold": topic})
        topics = {channel_name(topic, Hold): topic for topic in listens.values()}

        def hear(channel: str, data: bytes) -> None:
            heard[topics[channel]] = decode(Hold, data, channel=channel).reason

        for channel in topics:
            world.inner.subscribe(channel, hear)
        stops = world.broker.stops
        await until(lambda: stops.robots() >= set(listens))
        for robot, reason in (("robot1", "wet floor"), ("robot2", "a child")):
            assert (await stops.stop_robot(robot, reason)).confirmed
        await until(lambda: len(heard) == 2)
        assert heard == {"/robot1/hold": "wet floor", "/shared/hold": "a child"}


async def test_what_another_run_has_stopped_stays_stopped_and_is_named() -> None:
    async with driven_robots("robot1") as made:
        stops = made.world.broker.stops
        beat, bus = HoldBeat(STOP_ROBOT), made.world.inner

        async def hold() -> None:
            while True:
                reasons = {channel_name("/robot1/hold", Hold): "theirs"}
                beat.send(lambda channel, message: bus.publish(channel, encode(message)), reasons)
                await asyncio.sleep(HOLD_PERIOD_S)

        theirs = asyncio.create_task(hold())
        await until(lambda: made.passed["robot1"] == 0.0)
        passed: list[float] = []
        made.world.inner.subscribe(
            channel := channel_name("/robot1/cmd_vel", Twist),
            lambda _, data: passed.append(decode(Twist, data, channel=channel).linear.x),
        )
        report = await stops.release("robot1")
        assert (report.confirmed, report.still_stopped) == (False, ("robot1/gate",))
        assert "STILL STOPPED by somebody else, as another run: robot1/gate" in str(report)
        assert set(passed) == {0.0}
        theirs.cancel()
        await asyncio.wait([theirs])
        assert (await stops.release("robot1")).confirmed
        await until(lambda: made.passed["robot1"] > 0.3)


async def test_gates_that_do_not_confirm_are_named() -> None:
    async with driven_robots("robot1") as made:
        world = made.world
        await made.add("robot2", hold=None)
        await world.add(Worker(**of("robot3", "worker")))
        await world.offered("robot3_follow")
        report = await world.broker.stops.stop_robot("", "")
        assert not report.confirmed
        assert report.held == ("robot1/gate",)
        assert [(gate.gate, gate.problem) for gate in report.not_held] == [
            ("robot2/gate", "deaf"),
            ("robot3", "missing"),
        ]
        assert "NOT held: robot2/gate: it does not listen to /hold; robot3: no velocity gate" in str(report)

        await world.broker.stops.release("robot3")
        assert [gate.gate for gate in world.broker.stops.stopped().not_held] == ["robot2/gate"], "what moves need not"

        assert (await world.broker.stops.stop_robot("robot2", "")).held == (), "the other robot's gate is none of it"

        world.processes[1].bus.partitioned = True
        report = await world.broker.stops.stop_robot("robot1", "")
        assert [(gate.gate, gate.problem) for gate in report.not_held] == [("robot1/gate", "silent")]
        assert not report.confirmed


async def test_a_gate_that_starts_again_holds_before_anything_moves() -> None:
    async with driven_robots("robot1") as made:
        stops = made.world.broker.stops
        assert (await stops.stop_robot("", "")).confirmed
        made.world.processes[1].bus.partitioned = True
        await asyncio.sleep(5.0)
        passed: list[float] = []
        made.world.inner.subscribe(
            channel_name("/robot1/cmd_vel", Twist),
            lambda channel, data: passed.append(decode(Twist, data, channel=channel).linear.x),
        )
        await made.add("robot1")
        await asyncio.sleep(2.0)
        assert passed
        assert not any(passed)
        await until(lambda: stops.stopped().held == ("robot1/gate",))


@pytest.mark.slow
async def test_a_hundred_calls_and_one_that_does_not_end() -> None:
    async with driven_robots("robot1") as made:
        broker = made.world.broker
        arm = Stubborn(**of("robot1", "arm"))
        await made.world.add(arm)
        await made.world.offered("robot1_wave")
        waving = await broker.call("robot1_wave", {}, caller="agent")
        calls = [await broker.call("robot1_search", {}, caller="agent") for _ in range(100)]
        await answered(broker, waving)
        report = await broker.stops.stop_robot("", "")
        assert report.held == ("robot1/gate",)
        assert not report.confirmed
        assert [(call.call_id, call.module) for call in report.calls.going_on] == [(waving, "robot1/arm")]
        assert f"STILL GOING ON: robot1_wave [{waving}] of robot1/arm" in str(report)
        await until(lambda: [call.call_id for call in broker.cancels.lingering()] == [waving], 1.0)

        ended = await broker.cancels.cancel_all("", "")
        assert set(ended.ended) == set(calls)
        assert [call.call_id for call in ended.going_on] == [waving]
        arm.enough.set()
        await closed(broker, waving)
        assert broker.cancels.lingering() == []


@pytest.mark.parametrize(
    ("channel", "is_one"),
    [
        ("/robot1/hold#dimos_streams.Hold", True),
        ("hold#dimos_streams.Hold", False),
        ("/robot 1/hold#dimos_streams.Hold", False),
        (f"/{'a' * 60}#dimos_streams.Hold", False),
        ("/robot1/hold#std_msgs.Bool", False),
        ("/robot1/hold", False),
    ],
)
async def test_a_gate_that_names_what_is_no_channel_for_holds_gets_none_there(channel: str, is_one: bool) -> None:
    assert is_hold_channel(channel) is is_one


async def test_what_holds_anything_may_move_the_robot_and_is_ended_and_refused() -> None:
    async with driven_robots("robot1") as made:
        broker = made.world.broker
        process = await made.world.add()
        await process.host.start(Gripper(**of("robot1", "gripper")), {})
        await made.world.offered("robot1_hold_tight")
        holding = await broker.call("robot1_hold_tight", {}, caller="agent")
        await answered(broker, holding)
        report = await broker.stops.stop_robot("robot1", "")
        assert holding in report.calls.ended
        assert (await closed(broker, holding)).outcome is Outcome.CANCELLED
        refusal = (
            "skill 'robot1_hold_tight', which holds 'robot1/gripper', may move a robot that an operator has stopped:"
            " nothing moves it until an operator releases it (`dimos-streams release-robot`)"
        )
        with pytest.raises(CallRejectedError, match=f"^{re.escape(refusal)}$"):
            await broker.call("robot1_hold_tight", {}, caller="agent")
