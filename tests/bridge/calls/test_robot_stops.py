"""The operator's last word: stopped robots stand still, whoever commands, until an operator releases them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops import stop_state
from dimos_streams.bridge.calls.stops.hold_channels import is_hold_channel
from dimos_streams.bridge.calls.stops.overruling import check_overruled, overrule
from dimos_streams.bridge.calls.stops.stop_state import StopState
from dimos_streams.errors import CallRejectedError, ConflictError, UnknownRobotError
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold, SkillCall
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import HOLD_PERIOD_S, RELEASES, STOP_ROBOT
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import STOPPED, Outcome
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.overtaken import OrderKind
from tests.bridge.parts import Scene, Worker, answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]
FORWARD = Twist(linear=Vector3(x=0.5))


class StubbornConfig(ModuleConfig):
    """Nothing to set."""


class Stubborn(Module):
    """An arm whose skill does not end when it is asked to."""

    config: StubbornConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.enough = asyncio.Event()

    @skill(motion=True)
    async def wave(self, call: Call) -> None:
        """Wave until it is enough."""
        await call.update("waving")
        begun = clock.monotonic()
        while not self.enough.is_set() and clock.monotonic() - begun < 30.0:
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self.enough.wait(), 30.0)


class Sleepwalker(Stubborn):
    """Legs that go on and on, whoever asks them to end."""

    cmd_vel: Out[Twist]

    @skill(motion=True)
    async def walk(self, call: Call) -> None:
        """Walk until it is enough."""
        await call.update("walking")
        while not self.enough.is_set():
            self.cmd_vel.publish(FORWARD)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)


class Gripper(Module):
    """A gripper whose author does not call its skill a motion."""

    config: StubbornConfig

    @skill(resources={"gripper"})
    async def hold_tight(self, call: Call) -> None:
        """Hold something until told otherwise."""
        await call.update("holding")
        await asyncio.Event().wait()


class Watcher(Module):
    """Waits for something, and has the gripper hold it then."""

    config: StubbornConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen = asyncio.Event()

    @skill
    async def watch(self, call: Call) -> str:
        """Watch until something is seen."""
        await call.update("watching")
        await self.seen.wait()
        return await call.skills.start("robot1_hold_tight", {})


def of(robot: str, name: str) -> dict[str, Any]:
    """The arguments of a module of a robot."""
    return {"name": f"{robot}/{name}", "context": RunContext(services=Services(), namespace=f"{robot}/")}


class Yard:
    """Robots with a worker and a velocity gate each, whose skills and joysticks command all the time."""

    def __init__(self, world: Scene) -> None:
        self.world = world
        self.passed: dict[str, float] = {}
        """The newest forward speed that each robot's gate has let pass, m/s."""

    async def add(self, robot: str, **wired: str | None) -> None:
        """``wired`` has the topics that are others than usual, and None for inputs without one."""
        usual = {name: f"/{robot}/{name}" for name in ("skill_vel", "teleop_vel", "hold", "cmd_vel")}
        topics = {name: topic for name, topic in (usual | wired).items() if topic is not None}
        process = await self.world.add()
        for module, wiring in ((VelocityGate(name=f"{robot}/gate"), topics), (Worker(**of(robot, "worker")), {})):
            await process.host.start(module, wiring)
            process.modules[module.name] = module
        channel = channel_name(topics["cmd_vel"], Twist)

        def keep(channel: str, data: bytes) -> None:
            self.passed[robot] = decode(Twist, data, channel=channel).linear.x

        self.world.inner.subscribe(channel, keep)
        await self.world.offered(f"{robot}_follow")

    async def drive(self, *topics: str) -> None:
        while True:
            for topic in topics:
                self.world.inner.publish(channel_name(topic, Twist), encode(FORWARD))
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def yard(*robots: str, journal: Path | None = None, hold: str | None = None) -> AsyncIterator[Yard]:
    """``hold`` is the topic on which their gates listen to holds; None is for the usual ones."""
    config: dict[str, Any] = {"journal": journal} if journal else {}
    async with scene(worker=False, **config) as world:
        made = Yard(world)
        for robot in robots:
            await made.add(robot, **({"hold": hold} if hold else {}))
        topics = [f"/{robot}/skill_vel" for robot in robots]
        driving = asyncio.create_task(made.drive(*topics))
        await until(lambda: all(made.passed.get(robot, 0.0) > 0.3 for robot in robots))
        try:
            yield made
        finally:
            driving.cancel()
            await asyncio.wait([driving])


@pytest.mark.slow
async def test_every_robot_stands_until_it_is_released_whoever_commands() -> None:
    async with yard("robot1", "robot2") as made:
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


async def test_one_robot_of_two() -> None:
    async with yard("robot1", "robot2") as made:
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


@pytest.mark.slow
async def test_it_outlives_the_bridge(tmp_path: Path) -> None:
    async with yard("robot1", journal=tmp_path / "journal.sqlite") as made:
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


@pytest.mark.parametrize(("stopped", "released"), [("", ""), ("robot1", ""), ("", "robot1"), ("robot1", "robot1")])
async def test_a_release_undoes_no_stop_that_was_not_seen(stopped: str, released: str) -> None:
    async with yard("robot1", "robot2") as made:
        stops = made.world.broker.stops
        await stops.stop_robot("", "first")
        seen = [stop.utime for stop in stops.stopped().stops]
        await asyncio.sleep(5.0)
        await stops.stop_robot(stopped, "second")
        name = stopped or "every robot"
        with pytest.raises(ConflictError, match=rf"^{name} was stopped \d s ago \(second\), after what") as refused:
            await stops.release(released, seen)
        assert [stop["reason"] for stop in refused.value.result["stops"]][-1] == "second"
        assert made.passed["robot1"] == 0.0
        await stops.release("robot2", [*seen, *(stop.utime for stop in stops.stopped().stops)])
        await until(lambda: made.passed["robot2"] > 0.3, 2.0)
        await stops.release("")
        await until(lambda: made.passed["robot1"] > 0.3, 2.0)


async def test_a_newer_stop_of_another_robot_keeps_no_release_from_being_done() -> None:
    async with yard("robot1", "robot2") as made:
        stops = made.world.broker.stops
        await stops.stop_robot("robot1", "")
        seen = [stop.utime for stop in stops.stopped().stops]
        await asyncio.sleep(5.0)
        await stops.stop_robot("robot2", "")
        assert (await stops.release("robot1", seen)).changed
        assert [stop.robot for stop in stops.stopped().stops] == ["robot2"]


@pytest.mark.parametrize(
    ("released", "says"),
    [
        ("", "NOT stopped: a release came after this stop: every robot may move again; no motion was under way"),
        (
            "robot1",
            "NOT stopped: a release came after this stop: robot1 may move again; else every robot is stopped,"
            " held by robot2/gate; no motion was under way",
        ),
    ],
)
async def test_a_stop_that_was_undone_before_it_was_confirmed_says_so(released: str, says: str) -> None:
    async with yard("robot1", "robot2") as made:
        stops = made.world.broker.stops
        began = clock.monotonic()
        report, _ = await asyncio.gather(stops.stop_robot("", ""), stops.release(released))
        assert (report.confirmed, str(report)) == (False, says)
        assert clock.monotonic() - began < 2.0, "nobody waits for gates that need not hold"


async def test_a_stop_that_was_given_again_after_a_release_is_as_any_other() -> None:
    async with yard("robot1") as made:
        stops = made.world.broker.stops
        first, release, second = await asyncio.gather(
            stops.stop_robot("", ""), stops.release("robot1"), stops.stop_robot("robot1", "")
        )
        assert first.confirmed
        assert second.confirmed
        assert (release.confirmed, release.stopped_again) == (False, ("robot1",))
        assert str(release) == "robot1 was released, but a stop came after this release; STOPPED AGAIN: robot1"
        release, _ = await asyncio.gather(stops.release("robot1"), stops.stop_robot("robot1", ""))
        assert (release.still_stopped, release.stopped_again) == ((), ("robot1",)), "nobody else has stopped it"


async def test_a_release_is_sent_also_where_no_gate_was_heard_of() -> None:
    async with scene(worker=False) as world:
        channel, said = channel_name("/hold", Hold), list[bool]()
        world.inner.subscribe(channel, lambda _, data: said.append(decode(Hold, data, channel=channel).hold))
        await world.broker.stops.release("")
        await until(lambda: said)
        assert not any(said)


async def test_a_gate_that_takes_its_time_to_say_that_it_lets_go_is_stopped_by_nobody_else() -> None:
    async with yard("robot1") as made:
        stops = made.world.broker.stops
        assert (await stops.stop_robot("robot1", "")).confirmed
        made.world.processes[1].bus.faults = Faults(delay_s=(1.5, 1.5))
        report = await stops.release("robot1")
        assert (report.confirmed, report.still_stopped) == (True, ())


@pytest.mark.parametrize("hold", ["/robot1/hold", "/stand"])
async def test_what_a_bridge_that_is_gone_has_stopped_the_next_one_releases(hold: str) -> None:
    async with yard("robot1", hold=hold) as made:
        world = made.world
        assert (await world.broker.stops.stop_robot("", "")).confirmed
        await world.kill_bridge()
        await world.start_bridge()
        await world.offered("robot1_follow")
        await asyncio.sleep(1.0)
        assert world.broker.stops.stopped().stops == (), "it knows of no stop"
        assert made.passed["robot1"] == 0.0
        assert (await world.broker.stops.release("robot1")).changed
        await until(lambda: made.passed["robot1"] > 0.3, 2.0)


async def test_a_gate_that_was_down_at_a_release_is_told_when_it_is_back() -> None:
    """Else it would hold for a minute more. What another run stops after that is not undone."""
    async with yard("robot1") as made:
        stops, gate = made.world.broker.stops, made.world.processes[1].bus
        assert (await stops.stop_robot("", "")).confirmed
        gate.partitioned = True
        await asyncio.sleep(3.0)
        await stops.release("robot1")
        await asyncio.sleep(3.0)
        gate.partitioned = False
        await until(lambda: made.passed["robot1"] > 0.3, 5.0)
        await asyncio.sleep(RELEASES * HOLD_PERIOD_S)

        theirs = HoldBeat(STOP_ROBOT).message(True)
        made.world.inner.publish(channel_name("/robot1/hold", Hold), encode(theirs))
        await until(lambda: made.passed["robot1"] == 0.0)
        await asyncio.sleep(3.0)
        assert made.passed["robot1"] == 0.0


async def test_a_stopped_robot_that_has_not_come_back_is_released_by_its_name(tmp_path: Path) -> None:
    stopped = StopState().stop(Stop(robot="robot1", utime=1))
    assert stop_state.save(tmp_path / "journal.stops.json", stopped) == ""
    async with scene(worker=False, journal=tmp_path / "journal.sqlite") as world:
        stops = world.broker.stops
        assert stops.robots() == set()
        assert (await stops.release("robot1")).changed
        assert stops.stopped().stops == ()
        with pytest.raises(UnknownRobotError):
            await stops.release("robot1")


async def test_what_watches_modules_that_are_gone_is_no_motion_that_a_stop_ends() -> None:
    async with scene(worker=False) as world:
        watching = CallState(call_id="c1", skill="gone", module="gone", caller="bridge", journalled=False)
        unknown = CallState(call_id="c2", skill="gone", module="gone", caller="agent")
        setting = CallState(call_id="c3", skill=SET, module="gone", caller="bridge")
        for call in (watching, unknown, setting):
            world.broker.ledger.begin(call)
        report = await world.broker.stops.stop_robot("", "")
        assert report.calls.ended + tuple(call.call_id for call in report.calls.going_on) == ("c2",)


async def test_what_another_run_has_stopped_stays_stopped_and_is_named() -> None:
    async with yard("robot1") as made:
        stops = made.world.broker.stops
        beat, bus = HoldBeat(STOP_ROBOT), made.world.inner

        async def hold() -> None:
            while True:
                channels = {channel_name("/robot1/hold", Hold)}
                beat.send(lambda channel, message: bus.publish(channel, encode(message)), channels, "theirs")
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
    async with yard("robot1") as made:
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
    async with yard("robot1") as made:
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
    async with yard("robot1") as made:
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
        await until(lambda: [call.call_id for call in broker.stops.lingering()] == [waving], 1.0)

        ended = await broker.stops.cancel_all("", "")
        assert set(ended.ended) == set(calls)
        assert [call.call_id for call in ended.going_on] == [waving]
        arm.enough.set()
        await closed(broker, waving)
        assert broker.stops.lingering() == []


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_motion_that_does_not_end_at_a_stop_moves_nothing_after_the_release(asked_before: bool) -> None:
    async with scene(worker=False) as world:
        made = Yard(world)
        await made.add("robot1")
        process = await world.add()
        legs = Sleepwalker(**of("robot1", "legs"))
        await process.host.start(legs, {"cmd_vel": "/robot1/skill_vel"})
        await world.offered("robot1_walk")
        broker = world.broker
        walking = await broker.call("robot1_walk", {}, caller="agent")
        await until(lambda: made.passed.get("robot1", 0.0) > 0.3)
        if asked_before:
            await broker.cancel(walking, "enough")
            await asyncio.sleep(1.0)
            assert made.passed["robot1"] > 0.3
        report = await broker.stops.stop_robot("", "")
        assert [call.call_id for call in report.calls.going_on] == [walking]
        await broker.stops.release("")
        for _ in range(60):
            await asyncio.sleep(0.05)
            assert made.passed["robot1"] == 0.0
        refused = await closed(broker, await broker.call("robot1_walk", {}, caller="agent"))
        assert f"its call {walking} does not end" in refused.text

        legs.enough.set()
        assert (await closed(broker, walking)).outcome is Outcome.CANCELLED
        legs.enough.clear()
        await broker.call("robot1_walk", {}, caller="agent")
        await until(lambda: made.passed["robot1"] > 0.3)
        legs.enough.set()


@pytest.mark.parametrize("order", ["stop", "cancel"])
async def test_what_waits_for_what_an_order_ends_does_not_begin(order: str) -> None:
    async with yard("robot1") as made:
        broker = made.world.broker
        await made.world.add(Gripper(**of("robot1", "gripper")))
        await made.world.offered("robot1_hold_tight")

        def hold_tight(caller: str, wait_s: float = 0.0) -> Coroutine[Any, Any, str]:
            return broker.call("robot1_hold_tight", {}, caller=caller, on_duplicate="allow", lease_wait_s=wait_s)

        await answered(broker, await hold_tight("a"))
        waiting = asyncio.create_task(hold_tight("b", 60.0))
        await asyncio.sleep(1.0)
        if order == "stop":
            await asyncio.gather(broker.stops.stop_robot("", ""), broker.stops.release(""))
        else:
            await broker.stops.cancel_all("", "")
        with pytest.raises(CallRejectedError, match="since it was asked for"):
            await waiting
        assert await hold_tight("c")


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_was_asked_for_before_a_stop_moves_nothing_after_the_release(
    restarts: bool, tmp_path: Path
) -> None:
    async with yard("robot1", journal=tmp_path / "journal.sqlite") as made:
        broker, watcher = made.world.broker, Watcher(**of("robot1", "watcher"))
        for module in (Gripper(**of("robot1", "gripper")), watcher):
            await made.world.add(module)
        await made.world.offered("robot1_watch")
        before = await broker.call("robot1_watch", {}, caller="a")
        await answered(broker, before)
        assert str(await broker.stops.stop_robot("", "")).endswith("no motion was under way")
        await broker.stops.release("")
        if restarts:
            await made.world.kill_bridge()
            await made.world.start_bridge()
            broker = made.world.broker
            await made.world.offered("robot1_watch")
        after = await broker.call("robot1_watch", {}, caller="a", on_duplicate="allow")
        await answered(broker, after)
        watcher.seen.set()
        refused = await closed(broker, before)
        assert refused.outcome is Outcome.FAILED
        assert "an operator has stopped the robot since it was asked for" in refused.text
        assert (await closed(broker, after)).outcome is Outcome.COMPLETED


async def test_what_a_script_began_without_the_bridge_after_an_order_begins_what_it_wants() -> None:
    async with yard("robot1") as made:
        broker, watcher = made.world.broker, Watcher(**of("robot1", "watcher"))
        for module in (Gripper(**of("robot1", "gripper")), watcher):
            await made.world.add(module)
        await made.world.offered("robot1_watch")
        await broker.stops.stop_robot("", "")
        await broker.stops.release("")
        await broker.stops.cancel_all("", "")
        asked = SkillCall(
            utime=clock.utime(), call_id="c1", module="robot1/watcher", skill="robot1_watch", caller="script"
        )
        made.world.inner.publish("/skill_calls#dimos_streams.SkillCall", encode(asked))
        await until(lambda: broker.ledger.calls.get("c1") is not None)
        watcher.seen.set()
        assert (await closed(broker, "c1")).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("orders", "refused"),
    [
        ({"": "stop"}, True),
        ({"robot1": "stop"}, True),
        ({"robot2": "stop"}, False),
        ({"robot2": "stop", "": "cancel"}, True),
        ({}, False),
    ],
)
def test_an_order_is_about_its_robot(orders: dict[str, OrderKind], refused: bool) -> None:
    call = CallState(call_id="c1", skill="wave", module="robot1/arm", caller="a")
    for robot, kind in orders.items():
        overrule(call, kind, robot)
    overrule(call, "stop", "robot3")
    with pytest.raises(CallRejectedError) if refused else contextlib.nullcontext():
        check_overruled(call, "robot1/arm", may_move=True)


def test_a_stop_is_about_motions_and_the_end_of_all_calls_stays_that() -> None:
    call = CallState(call_id="c1", skill="look", module="robot1/eye", caller="a")
    overrule(call, "stop", "")
    check_overruled(call, "robot1/eye", may_move=False)
    overrule(call, "cancel", "")
    overrule(call, "stop", "")
    with pytest.raises(CallRejectedError, match="all calls were ended since it was asked for"):
        check_overruled(call, "robot1/eye", may_move=False)


def test_the_innermost_word_counts() -> None:
    def stop(robot: str) -> Stop:
        return Stop(robot=robot, utime=1)

    def covered(state: StopState) -> list[str]:
        return [space for space in ("", "a", "a/b", "a/c", "ab") if state.covering(space)]

    everything = StopState().stop(stop(""))
    assert covered(everything) == ["", "a", "a/b", "a/c", "ab"]
    but_a = everything.release("a")
    assert covered(but_a) == ["", "ab"]
    assert covered(but_a.stop(stop("a/b"))) == ["", "a/b", "ab"]
    assert covered(but_a.stop(stop(""))) == covered(everything), "a new order for every robot counts for every robot"
    assert but_a.release("") == StopState()
    one = StopState().stop(stop("a"))
    assert covered(one) == ["a", "a/b", "a/c"]
    assert one.release("a") == one.release("") == StopState()
    assert one.release("b") == one


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
    async with yard("robot1") as made:
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
