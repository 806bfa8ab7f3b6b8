import asyncio
import json
import math
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.operator.holding import GATE, HOLD_PERIOD_S, HOLDS_KNOWN_AFTER_S, MAX_VALID_S, STOP_ROBOT
from dimos_streams.robot.simulator import Simulator
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing import CrashablePart
from dimos_streams.testing.harness import ModuleHarness
from tests.helpers import hold_up, run_virtual

FORWARD = Twist(linear=Vector3(x=0.5))
CMD_VEL = channel_name("/cmd_vel", Twist)


async def command_for(harness: ModuleHarness, twist: Twist, seconds: float) -> None:
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        harness.feed("skill_vel", twist)
        await asyncio.sleep(0.1)


def clear_scan(distance: float = 5.0) -> LaserScan:
    return LaserScan(
        angle_min=-math.pi,
        angle_increment=math.tau / 360,
        range_min=0.05,
        range_max=12.0,
        ranges=[distance] * 360,
    )


@pytest.mark.virtual_time
async def test_rates_the_stop_after_the_last_command_and_silence() -> None:
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        times: list[float] = []
        harness.bus.subscribe(CMD_VEL, lambda channel, data: times.append(clock.monotonic()))
        await command_for(harness, FORWARD, 2.0)
        stopped_at = clock.monotonic() - 0.1
        assert 38 <= len(times) <= 42
        await asyncio.sleep(0.4)
        assert harness.sent("cmd_vel")[-1] == Twist()
        assert max(twist.linear.x for twist in harness.sent("cmd_vel")) == pytest.approx(0.5)
        await asyncio.sleep(10.0)
        assert max(times) < stopped_at + 1.0, "then it is silent"
        first_zero = next(
            moment
            for moment, twist in zip(times, harness.sent("cmd_vel"), strict=True)
            if moment > stopped_at and twist == Twist()
        )
        assert first_zero - stopped_at <= 0.4


@pytest.mark.virtual_time
async def test_it_commands_to_stand_for_as_long_as_an_operator_has_stopped_the_robot() -> None:
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        harness.feed("hold", Hold(utime=clock.utime(), source=STOP_ROBOT, hold=True, valid_s=60.0))
        await asyncio.sleep(5.0)
        before = len(harness.sent("cmd_vel"))
        await asyncio.sleep(1.0)
        assert len(harness.sent("cmd_vel")) - before >= 19


@pytest.mark.virtual_time
async def test_a_wired_scan_that_falls_silent_stops_the_base() -> None:
    async with ModuleHarness(VelocityGate) as harness:
        await command_for(harness, FORWARD, 1.0)
        assert all(twist == Twist() for twist in harness.sent("cmd_vel"))
        harness.feed("scan", clear_scan())
        await command_for(harness, FORWARD, 0.5)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.2
        await command_for(harness, FORWARD, 0.3)
        assert harness.sent("cmd_vel")[-1].linear.x == 0.0
        harness.feed("scan", clear_scan(0.3))
        await command_for(harness, FORWARD, 0.3)
        assert harness.sent("cmd_vel")[-1].linear.x == 0.0
        assert harness.failed() is None


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("twist", "said"),
    [
        (Twist(linear=Vector3(x=200.0), angular=Vector3(z=0.5)), "200 m/s and 0.5 rad/s; 1 and 1.8 pass at most"),
        (Twist(angular=Vector3(z=-90.0)), "0 m/s and -90 rad/s; 1 and 1.8 pass at most"),
        (Twist(linear=Vector3(x=math.nan)), "nan m/s and 0 rad/s: that counts as a command to stand"),
        (
            Twist(linear=Vector3(x=0.2, z=math.nan)),
            "0.2 m/s and 0 rad/s, and what is not finite on another axis: that counts as a command to stand",
        ),
    ],
)
async def test_commands_that_nobody_can_mean_are_in_the_log_once_a_second(
    twist: Twist, said: str, settled_log: pytest.LogCaptureFixture
) -> None:
    async with ModuleHarness(VelocityGate, name="gate", unwired=("scan",)) as harness:
        await command_for(harness, Twist(linear=Vector3(x=3.0), angular=Vector3(z=5.0)), 1.0)
        assert settled_log.messages == []
        await command_for(harness, twist, 1.95)
    assert [message.partition(" (and")[0] for message in settled_log.messages] == [
        f"velocity gate 'gate': skill wants {said}"
    ] * 2


@pytest.mark.virtual_time
@pytest.mark.parametrize("part", ["linear", "angular"])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
async def test_a_command_to_stand_is_one_with_any_value_that_is_not_finite(part: str, axis: str) -> None:
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        bad = Twist(linear=Vector3(x=0.2), angular=Vector3(z=0.2))
        setattr(getattr(bad, part), axis, math.nan)
        await command_for(harness, Twist(linear=Vector3(x=0.2), angular=Vector3(z=0.2)), 1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.0
        await command_for(harness, bad, 0.2)
        assert harness.sent("cmd_vel")[-1] == Twist()


@pytest.mark.virtual_time
async def test_a_gate_that_lacks_a_scan_says_so_while_something_wants_to_drive() -> None:
    async with ModuleHarness(VelocityGate) as harness:
        await asyncio.sleep(3.0)
        assert harness.module.health == "ok"
        await command_for(harness, FORWARD, 1.0)
        assert harness.module.health == "no scan for 4 s: the gate only lets the robot turn"
        harness.feed("scan", LaserScan())
        await command_for(harness, FORWARD, 0.3)
        why = "the scan has no rays: `ranges` is empty: the gate only lets the robot turn"
        assert harness.module.health == why
        assert harness.sent("cmd_vel")[-1] == Twist()
        harness.feed("scan", clear_scan())
        await command_for(harness, FORWARD, 0.3)
        assert harness.module.health == "ok"
        await asyncio.sleep(2.0)
        assert harness.module.health == "ok", "nothing wants to drive any more"


def test_it_leaves_the_base_at_rest_when_it_stops() -> None:
    async def main() -> list[Twist]:
        sent: list[Twist] = []
        bus = create_bus("memq://")
        await bus.open()
        bus.subscribe(CMD_VEL, lambda channel, data: sent.append(decode(Twist, data, channel=channel)))
        host = ModuleHost(bus)
        await host.start(VelocityGate(), {"skill_vel": "/skill_vel", "cmd_vel": "/cmd_vel"})
        for _ in range(10):
            bus.publish(channel_name("/skill_vel", Twist), encode(FORWARD))
            await asyncio.sleep(0.1)
        assert sent[-1].linear.x > 0.4
        await host.stop()
        await asyncio.sleep(0.01)
        await bus.close()
        return sent

    assert run_virtual(main())[-1] == Twist()


@pytest.mark.virtual_time
@pytest.mark.parametrize("direction", [0.0, 1.2, -2.5])
@pytest.mark.slow
async def test_with_the_simulator_nothing_is_hit(direction: float) -> None:
    simulator = Simulator({"people": []}, name="robot")
    async with ModuleHarness(VelocityGate) as harness:
        await harness.add(simulator)
        velocity = Vector3(x=2.0 * math.cos(direction), y=2.0 * math.sin(direction))
        await command_for(harness, Twist(linear=velocity), 8.0)
        assert simulator.world.data.ncon == 0
        assert min(simulator.lidar.scan(simulator.world)) > 0.22 + 0.2
        start, now = simulator.world.scene.start, simulator.world.pose()
        assert math.dist((now.x, now.y), (start.x, start.y)) > 0.8
        assert simulator.world.twist().vx == pytest.approx(0.0, abs=0.01)


def driven_by_another(*, gate: bool) -> float:
    """Metres that a robot goes in ten seconds which somebody else drives at 0.5 m/s, every 0.3 s."""

    async def main() -> float:
        simulator = Simulator({"people": [], "start_x": -3.0, "start_y": -2.2, "cmd_timeout_s": 1.0}, name="robot")
        async with ModuleHarness(simulator) as harness:
            if gate:
                await harness.add(VelocityGate())
                await command_for(harness, Twist(), 0.5)
                await asyncio.sleep(2.0)
            start = simulator.world.pose()
            for _ in range(33):
                harness.feed("cmd_vel", FORWARD)
                await asyncio.sleep(0.3)
            now = simulator.world.pose()
            return math.dist((now.x, now.y), (start.x, start.y))

    return run_virtual(main())


@pytest.mark.feature("D2")
@pytest.mark.slow
def test_an_idle_gate_does_not_brake_a_robot_that_somebody_else_drives() -> None:
    alone = driven_by_another(gate=False)
    assert alone > 4.5
    assert driven_by_another(gate=True) == pytest.approx(alone, abs=0.01)


HOLD_TOPICS = {"skill_vel": "/skill_vel", "teleop_vel": "/teleop_vel", "hold": "/hold", "cmd_vel": "/cmd_vel"}


@pytest.mark.virtual_time
@pytest.mark.feature("B3")
@pytest.mark.parametrize("phase_s", [0.0, 0.05, 0.1, 0.15, 0.19])
async def test_a_gate_that_was_killed_lets_nothing_through_before_it_knows_who_holds(phase_s: float) -> None:
    bus = create_bus("memq://")
    await bus.open()
    moved: list[float] = []

    def on_velocity(channel: str, data: bytes) -> None:
        if decode(Twist, data, channel=channel).linear.x:
            moved.append(clock.monotonic())

    bus.subscribe(CMD_VEL, on_velocity)

    async def say(channel: str, message: Callable[[], Message], period_s: float) -> None:
        while True:
            bus.publish(channel, encode(message()))
            await asyncio.sleep(period_s)

    def hold() -> Hold:
        return Hold(utime=clock.utime(), source="agent", hold=True, valid_s=15.0)

    gate = CrashablePart(bus, lambda context: [VelocityGate(name="gate", context=context)], topics=HOLD_TOPICS)
    holding = asyncio.create_task(say(channel_name("/hold", Hold), hold, HOLD_PERIOD_S))
    driving = asyncio.create_task(say(channel_name("/skill_vel", Twist), lambda: FORWARD, 0.05))
    for _ in range(2):
        await asyncio.sleep(1.0 + phase_s)
        gate.crash()
        await gate.start()
    await asyncio.sleep(1.0)
    assert not moved
    holding.cancel()
    await asyncio.sleep(16.0)
    assert moved, "nobody holds any more"
    gate.crash()
    moved.clear()
    await gate.start()
    began = clock.monotonic()
    await asyncio.sleep(2.0)
    assert moved[0] - began == pytest.approx(HOLDS_KNOWN_AFTER_S, abs=0.15)
    driving.cancel()
    await gate.stop()
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.feature("K5")
async def test_teleoperation_passes_once_a_gate_has_listened_who_holds() -> None:
    """An operator may have stopped the robot while there was no gate."""
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        for _ in range(4):
            harness.feed("teleop_vel", FORWARD)
            await asyncio.sleep(0.1)
        assert harness.sent("cmd_vel")[-1] == Twist()
        for _ in range(4):
            harness.feed("teleop_vel", FORWARD)
            await asyncio.sleep(0.1)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.3


def test_a_gate_that_was_held_up_listens_again_and_one_that_hears_no_holds_need_not() -> None:
    """A loop that does not run is a clock that jumps."""

    def moved_after(unwired: tuple[str, ...], held_up_s: float) -> bool:
        async def main() -> bool:
            async with ModuleHarness(VelocityGate, unwired=("scan", *unwired)) as harness:
                await command_for(harness, FORWARD, 1.0)
                hold_up(held_up_s)
                await command_for(harness, FORWARD, 0.3)
                return bool(harness.sent("cmd_vel")[-1] != Twist())

        return run_virtual(main())

    assert moved_after((), 0.3)
    assert not moved_after((), 1.0)
    assert moved_after(("hold",), 1.0)


def test_a_timeout_beyond_the_promise_is_refused() -> None:
    with pytest.raises(ValidationError, match="command_timeout_s"):
        VelocityGate({"command_timeout_s": 0.6})


@pytest.mark.virtual_time
@pytest.mark.feature("B3")
async def test_its_health_says_what_was_odd_about_a_hold_for_a_while() -> None:
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        await asyncio.sleep(1.0)
        harness.feed("hold", Hold(utime=1, seq=1, source="console", hold=True, valid_s=3600.0))
        await command_for(harness, FORWARD, 1.0)
        assert harness.sent("cmd_vel")[-1] == Twist()
        assert "hold of 'console' counts for 60 s only: valid_s is 3600.0" in harness.module.health
        harness.feed("hold", Hold(utime=1, seq=1, source="", hold=True, valid_s=5.0))
        await asyncio.sleep(0.2)
        assert "skipped a hold of '': its source is empty" in harness.module.health
        await asyncio.sleep(MAX_VALID_S + 0.1)
        assert harness.module.health == "ok"
        await command_for(harness, FORWARD, 1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.2


@pytest.mark.virtual_time
async def test_a_reason_that_changes_all_the_time_is_reported_once_a_second_and_the_newest_wins() -> None:
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        reported: list[tuple[float, dict[str, list[str]]]] = []
        gate = harness.module
        gate.on_state = lambda: reported.append((clock.monotonic(), json.loads(gate.state_json)[GATE]))
        began = clock.monotonic()
        for distance in range(1, 51):
            why = f"a person is {distance} cm away"
            harness.feed("hold", Hold(utime=clock.utime(), source="guard", hold=True, valid_s=1.0, reason=why))
            await asyncio.sleep(HOLD_PERIOD_S)
        await asyncio.sleep(0.5)
        assert 10 <= len(reported) <= 12
        assert reported[0][0] - began < 0.2
        assert reported[-1][1]["reasons"] == ["a person is 50 cm away"]
        harness.feed("hold", Hold(utime=clock.utime(), source="guard"))
        await asyncio.sleep(0.1)
        assert reported[-1][1]["holds"] == [], "at once"
