"""A release undoes the stops that it is about, no other ones, and nothing moves by it alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.stops import stop_state
from dimos_streams.bridge.calls.stops.stop_state import StopState
from dimos_streams.errors import ConflictError, UnknownRobotError
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import HOLD_PERIOD_S, RELEASES, STOP_ROBOT
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.calls.driven_robots import DrivenRobots, Sleepwalker, driven_robots, of
from tests.bridge.scene import closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]


@pytest.mark.parametrize(("stopped", "released"), [("", ""), ("robot1", ""), ("", "robot1"), ("robot1", "robot1")])
async def test_a_release_undoes_no_stop_that_was_not_seen(stopped: str, released: str) -> None:
    async with driven_robots("robot1", "robot2") as made:
        stops = made.world.broker.stops
        await stops.stop_robot("", "first")
        seen = [stop.utime for stop in stops.stopped().stops]
        await asyncio.sleep(5.0)
        await stops.stop_robot(stopped, "second")
        name, why = (stopped, "second") if stopped else ("every robot", "second; first")
        with pytest.raises(ConflictError, match=rf"^{name} was stopped \d s ago \({why}\), after what") as refused:
            await stops.release(released, seen)
        assert [stop["reason"] for stop in refused.value.result["stops"]][-1] == why
        assert made.passed["robot1"] == 0.0
        await stops.release("robot2", [*seen, *(stop.utime for stop in stops.stopped().stops)])
        await until(lambda: made.passed["robot2"] > 0.3, 2.0)
        await stops.release("")
        await until(lambda: made.passed["robot1"] > 0.3, 2.0)


async def test_who_has_seen_no_stop_releases_none() -> None:
    async with scene() as world:
        await world.broker.stops.stop_robot("", "")
        with pytest.raises(ConflictError):
            await world.broker.stops.release("", [])
        assert world.broker.stops.stopped().stops


async def test_a_gate_that_others_stop_is_named_by_the_release_of_its_own_robot_only() -> None:
    async with driven_robots("robot1", "robot2") as made:
        stops = made.world.broker.stops
        theirs = HoldBeat(STOP_ROBOT).message(True)
        made.world.inner.publish(channel_name("/robot2/hold", Hold), encode(theirs))
        await until(lambda: made.passed["robot2"] == 0.0)
        await stops.stop_robot("robot1", "")
        assert (await stops.release("robot1")).still_stopped == ()


@pytest.mark.parametrize(("robot", "topic"), [("robot1", "/robot1/hold"), ("", "/hold")])
async def test_a_robot_that_was_stopped_is_held_before_anything_of_it_was_heard(
    robot: str, topic: str, tmp_path: Path
) -> None:
    assert stop_state.save(tmp_path / "journal.stops.json", StopState().stop(Stop(robot=robot, utime=1))) == ""
    async with scene(worker=False, journal=tmp_path / "journal.sqlite") as world:
        channel, said = channel_name(topic, Hold), list[bool]()
        world.inner.subscribe(channel, lambda _, data: said.append(decode(Hold, data, channel=channel).hold))
        await until(lambda: said)
        assert all(said)


async def test_a_newer_stop_of_another_robot_keeps_no_release_from_being_done() -> None:
    async with driven_robots("robot1", "robot2") as made:
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
    async with driven_robots("robot1", "robot2") as made:
        stops = made.world.broker.stops
        began = clock.monotonic()
        report, _ = await asyncio.gather(stops.stop_robot("", ""), stops.release(released))
        assert (report.confirmed, str(report)) == (False, says)
        assert clock.monotonic() - began < 2.0, "nobody waits for gates that need not hold"


async def test_a_stop_that_was_given_again_after_a_release_is_as_any_other() -> None:
    async with driven_robots("robot1") as made:
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
        began = clock.monotonic()
        assert not (await world.broker.stops.release("")).changed
        assert clock.monotonic() == began, "there is nobody to wait for"
        await until(lambda: said)
        assert not any(said)


async def test_a_gate_that_takes_its_time_to_say_that_it_lets_go_is_stopped_by_nobody_else() -> None:
    async with driven_robots("robot1") as made:
        stops = made.world.broker.stops
        assert (await stops.stop_robot("robot1", "")).confirmed
        made.world.processes[1].bus.faults = Faults(delay_s=(1.5, 1.5))
        report = await stops.release("robot1")
        assert (report.confirmed, report.still_stopped) == (True, ())


@pytest.mark.parametrize("hold", ["/robot1/hold", "/stand"])
async def test_what_a_bridge_that_is_gone_has_stopped_the_next_one_releases(hold: str) -> None:
    async with driven_robots("robot1", hold=hold) as made:
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
    async with driven_robots("robot1") as made:
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


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_motion_that_does_not_end_at_a_stop_moves_nothing_after_the_release(asked_before: bool) -> None:
    async with scene(worker=False) as world:
        made = DrivenRobots(world)
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
