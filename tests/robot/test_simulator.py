import asyncio
import hashlib
import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.errors import UserError
from dimos_streams.messages.codec import channel_name
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.image import array_from_image
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.time import utime_of
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.robot.completeness import COMPLETE_WITHIN_S
from dimos_streams.robot.simulator import MAX_MESSAGE_BYTES, Simulator
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing.harness import ModuleHarness
from tests.helpers import hold_up, run_virtual


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_rates_and_sizes_of_all_messages() -> None:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()

    def take(channel: str, data: bytes) -> None:
        topic = channel.partition("#")[0]
        counts[topic] += 1
        sizes[topic] = max(sizes[topic], len(data))

    async with ModuleHarness(Simulator) as harness:
        harness.bus.subscribe_all(take)
        await asyncio.sleep(4.01)
    expected = {"/odom": 20, "/tf": 20, "/scan": 10, "/color_image": 10, "/depth_image": 10}
    expected |= {"/instances": 10, "/camera_info": 10, "/ground_truth": 10, "/instance_labels": 1}
    for topic, rate in expected.items():
        assert counts[topic] == 4 * rate, topic
    assert max(sizes.values()) <= MAX_MESSAGE_BYTES


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_messages_say_what_the_world_is() -> None:
    config = {"events": [{"at_s": 0, "place": "person_red", "x": 0.0, "y": -0.9, "yaw_deg": 180}]}
    async with ModuleHarness(Simulator, config, name="robot") as harness:
        await asyncio.sleep(1.01)
        colour, depth = harness.sent("color_image")[-1], harness.sent("depth_image")[-1]
        instances, info = harness.sent("instances")[-1], harness.sent("camera_info")[-1]
        labels = json.loads(harness.sent("instance_labels")[-1].data)
        truth = {t.child_frame_id: t.transform for t in harness.sent("ground_truth")[-1].transforms}
        frames = [(t.header.frame_id, t.child_frame_id) for t in harness.sent("tf")[-1].transforms]
    assert utime_of(colour.header) == utime_of(depth.header) == utime_of(instances.header)
    assert colour.header.frame_id == "camera_optical"
    assert array_from_image(colour).shape == (240, 320, 3)
    assert (info.width, info.height) == (320, 240)
    assert set(truth) == {"base_link", "person_red", "person_green", "person_yellow"}
    assert frames == [("world", "odom"), ("odom", "base_link"), ("base_link", "camera_optical")]
    (red,) = [int(key) for key, text in labels.items() if "red" in text]
    mask = array_from_image(instances) == red
    assert mask.sum() > 200
    distance = truth["person_red"].translation.x - truth["base_link"].translation.x
    millimetres = np.median(array_from_image(depth)[mask])
    assert millimetres / 1000 + 0.06 == pytest.approx(distance - 0.11, abs=0.05)


class Beside(Module):
    """A module of the same robot."""

    config: ModuleConfig


@pytest.mark.virtual_time
@pytest.mark.parametrize(("robot", "begins_s"), [(("gate",), 0.4), (("gate", "detector"), COMPLETE_WITHIN_S)])
async def test_it_does_not_begin_before_its_robot_is_complete_but_waits_not_for_ever(
    robot: tuple[str, ...], begins_s: float
) -> None:
    config = {"camera_width": 64, "camera_height": 48}
    began = clock.monotonic()
    async with ModuleHarness(Simulator, config, context=RunContext(robot=robot)) as harness:
        await asyncio.sleep(0.4)
        assert (harness.sent("odom"), harness.module.health) == ([], f"waits for {', '.join(robot)}")
        await harness.add(Beside(name="gate"))
        async with asyncio.timeout(10):
            while not harness.sent("odom"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert clock.monotonic() - began == pytest.approx(begins_s, abs=0.2)
        assert harness.module.health == "ok"


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_the_base_obeys_and_stops_when_commands_cease() -> None:
    async with ModuleHarness(Simulator, {"people": []}) as harness:
        for _ in range(10):
            harness.feed("cmd_vel", Twist(linear=Vector3(x=0.5)))
            await asyncio.sleep(0.1)
        assert harness.sent("odom")[-1].twist.twist.linear.x == pytest.approx(0.5, abs=0.03)
        await asyncio.sleep(0.8)
        assert harness.sent("odom")[-1].twist.twist.linear.x == pytest.approx(0.0, abs=0.01)
        harness.feed("cmd_vel", Twist(linear=Vector3(x=math.nan), angular=Vector3(z=math.inf)))
        await asyncio.sleep(0.3)
        assert harness.sent("odom")[-1].pose.pose.position.x == pytest.approx(-1.9, abs=0.3)
        assert harness.failed() is None


@pytest.mark.slow
def test_pictures_nobody_wants_are_not_taken() -> None:
    async def main() -> int:
        bus = create_bus("memq://")
        await bus.open()
        host, simulator = ModuleHost(bus), Simulator(name="robot")
        await host.start(simulator, {name: f"/{name}" for name in Simulator.streams()})
        scans = []
        bus.subscribe(channel_name("/scan", LaserScan), lambda channel, data: scans.append(data))
        await asyncio.sleep(1.0)
        assert scans
        assert simulator.pictures_taken == 0
        subscription = bus.subscribe(channel_name("/instances", Image), lambda channel, data: None)
        await asyncio.sleep(1.0)
        taken = simulator.pictures_taken
        subscription.close()
        await asyncio.sleep(1.0)
        assert simulator.pictures_taken == taken
        await host.stop()
        await bus.close()
        return taken

    assert 9 <= run_virtual(main()) <= 11


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_events_hide_people_and_freeze_the_camera() -> None:
    events = [
        {"at_s": 1.0, "hide": "person_red"},
        {"at_s": 2.0, "freeze_camera": True},
        {"at_s": 3.0, "freeze_camera": False},
        {"at_s": 3.0, "show": "person_red"},
    ]
    async with ModuleHarness(Simulator, {"events": events}, name="robot") as harness:

        def people() -> set[str]:
            return {t.child_frame_id for t in harness.sent("ground_truth")[-1].transforms} - {"base_link"}

        await asyncio.sleep(0.9)
        assert "person_red" in people()
        await asyncio.sleep(1.05)
        assert "person_red" not in people()
        frozen_at = len(harness.sent("color_image"))
        await asyncio.sleep(1.0)
        assert len(harness.sent("color_image")) - frozen_at <= 1
        assert len(harness.sent("scan")) >= 29
        await asyncio.sleep(0.5)
        assert "person_red" in people()
        assert len(harness.sent("color_image")) - frozen_at >= 4


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_events_come_in_the_order_of_their_times_and_people_walk_on_when_released() -> None:
    events = [
        {"at_s": 2.0, "release": "person_red"},
        {"at_s": 0.5, "place": "person_red", "x": 1.0, "y": -1.0, "yaw_deg": 90.0},
        {"at_s": 0.5, "hide": "person_green"},
    ]
    pictures = ("color_image", "depth_image", "instances")
    async with ModuleHarness(Simulator, {"events": events}, unwired=pictures) as harness:

        def red() -> tuple[float, float, float] | None:
            truth = {t.child_frame_id: t.transform for t in harness.sent("ground_truth")[-1].transforms}
            assert ("person_green" in truth) == (harness.module.world.time < 0.5)
            at = truth["person_red"]
            return at.translation.x, at.translation.y, math.degrees(2 * math.asin(at.rotation.z))

        await asyncio.sleep(0.45)
        assert red() != pytest.approx((1.0, -1.0, 90.0))
        for _ in range(3):
            await asyncio.sleep(0.5)
            assert red() == pytest.approx((1.0, -1.0, 90.0))
        await asyncio.sleep(1.5)
        walked = red()
        await asyncio.sleep(1.0)
        assert red() != walked


@pytest.mark.virtual_time
@pytest.mark.parametrize("rate", [1.5, 7.0, 33.0, 40.0])
async def test_what_is_measured_comes_evenly_at_any_rate(rate: float) -> None:
    times: list[float] = []
    pictures = ("color_image", "depth_image", "instances")
    async with ModuleHarness(Simulator, {"odom_hz": rate, "people": []}, unwired=pictures) as harness:
        harness.bus.subscribe(channel_name("/odom", Odometry), lambda channel, data: times.append(clock.monotonic()))
        await asyncio.sleep(3.01)
    assert len(times) == pytest.approx(3.0 * rate, abs=0.99)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert all(abs(gap - 1.0 / rate) < 0.0251 for gap in gaps)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "bad",
    [
        Twist(linear=Vector3(x=math.nan)),
        Twist(linear=Vector3(y=math.inf)),
        Twist(angular=Vector3(z=math.nan)),
        Twist(linear=Vector3(x=0.3, z=math.nan)),
    ],
)
async def test_a_command_with_anything_that_is_no_number_stops_the_base(bad: Twist) -> None:
    async with ModuleHarness(Simulator, {"people": [], "cmd_timeout_s": 5.0}) as harness:
        harness.feed("cmd_vel", Twist(linear=Vector3(x=0.3, y=0.2), angular=Vector3(z=0.4)))
        await asyncio.sleep(1.0)
        moving = harness.sent("odom")[-1].twist.twist
        assert (moving.linear.x, moving.linear.y, moving.angular.z) == pytest.approx((0.3, 0.2, 0.4), abs=0.03)
        harness.feed("cmd_vel", bad)
        await asyncio.sleep(1.0)
        still = harness.sent("odom")[-1].twist.twist
        assert (still.linear.x, still.linear.y, still.angular.z) == pytest.approx((0.0, 0.0, 0.0), abs=0.01)


def digest(seed: int) -> str:
    async def main() -> str:
        everything = hashlib.sha256()
        bus = create_bus("memq://")
        await bus.open()
        for topic in ("color_image", "depth_image", "instances"):
            bus.subscribe(channel_name(f"/{topic}", Image), lambda channel, data: everything.update(data))
        host = ModuleHost(bus)
        simulator = Simulator(name="robot", context=RunContext(seed=seed))
        await host.start(simulator, {name: f"/{name}" for name in Simulator.streams()})
        await asyncio.sleep(2.01)
        everything.update(simulator.world.digest().encode())
        await host.stop()
        await bus.close()
        return everything.hexdigest()

    return run_virtual(main())


@pytest.mark.slow
def test_what_it_publishes_is_a_function_of_the_seed() -> None:
    assert digest(3) == digest(3)
    assert digest(3) != digest(4)


def test_config_that_can_not_be() -> None:
    with pytest.raises(ValidationError, match="exactly one"):
        Simulator({"events": [{"at_s": 1.0}]})
    with pytest.raises(ValidationError, match="a message holds"):
        Simulator({"camera_width": 640, "camera_height": 480})


@pytest.mark.virtual_time
@pytest.mark.parametrize("config", [{"people": ["person_rde"]}, {"events": [{"at_s": 1, "hide": "person_rde"}]}])
async def test_an_unknown_person_is_an_error_at_the_start(config: dict[str, object]) -> None:
    with pytest.raises(UserError, match="did you mean 'person_red'"):
        async with ModuleHarness(Simulator, config):
            pass


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_machine_that_is_too_slow_skips_ticks_and_counts_them() -> None:
    async with ModuleHarness(Simulator, {"people": []}) as harness:
        simulator = harness.module
        assert isinstance(simulator, Simulator)
        await asyncio.sleep(1.0)
        hold_up(5.0)
        await asyncio.sleep(1.0)
        assert 190 <= simulator.skipped_ticks <= 200
        assert 1.5 < simulator.world.time < 2.5
