import asyncio
import math

import pytest
from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.robot.simulator import Simulator
from dimos_streams.robot.velocity_gate import VelocityGate
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing.harness import ModuleHarness
from tests.helpers import run_virtual

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


def test_rates_the_stop_after_the_last_command_and_silence() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_a_wired_scan_that_falls_silent_stops_the_base() -> None:
    async def main() -> None:
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

    run_virtual(main())


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


@pytest.mark.parametrize("direction", [0.0, 1.2, -2.5])
def test_with_the_simulator_nothing_is_hit(direction: float) -> None:
    async def main() -> None:
        simulator = Simulator({"people": []}, name="robot")
        async with ModuleHarness(VelocityGate) as harness:
            await harness.add(simulator)
            velocity = Vector3(x=2.0 * math.cos(direction), y=2.0 * math.sin(direction))
            await command_for(harness, Twist(linear=velocity), 8.0)
            assert simulator.world.data.ncon == 0
            assert min(simulator.lidar.scan(simulator.world)) > 0.22 + 0.2
            start, now = simulator.config, simulator.world.pose()
            assert math.dist((now.x, now.y), (start.start_x, start.start_y)) > 0.8
            assert simulator.world.twist().vx == pytest.approx(0.0, abs=0.01)

    run_virtual(main())


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
def test_an_idle_gate_does_not_brake_a_robot_that_somebody_else_drives() -> None:
    alone = driven_by_another(gate=False)
    assert alone > 4.5
    assert driven_by_another(gate=True) == pytest.approx(alone, abs=0.01)


def test_a_timeout_beyond_the_promise_is_refused() -> None:
    with pytest.raises(ValidationError, match="command_timeout_s"):
        VelocityGate({"command_timeout_s": 0.6})
