"""A camera and odometry on two machines whose clocks differ: what is seen is placed where it is, and at once."""

from __future__ import annotations

import asyncio
import cmath
from collections.abc import Callable

import pytest

from dimos_streams import clock
from dimos_streams.messages.geometry_msgs import Pose, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.time import header
from dimos_streams.module import Clocks, RunContext, Services
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.moving.planar import turned
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.streams import In

pytestmark = [pytest.mark.feature("H1"), pytest.mark.virtual_time]

AHEAD_US = 800_000
TURN_RAD_S = 0.3
LATE_S = 0.2


class Measured:
    """What the parts have measured."""

    def __init__(self, ahead_us: int | None) -> None:
        self._ahead_us = ahead_us

    def ahead_us(self, of: str, than: str) -> int | None:
        assert (of, than) == ("eye", "base")
        return self._ahead_us


async def bearing_error(measured_ahead: Callable[[], int | None]) -> float:
    """By how many radians something is misplaced that a turning robot saw a moment ago."""
    poses = PoseHistory(measured_ahead)
    for _ in range(40):
        yaw = TURN_RAD_S * clock.monotonic()
        rotation = Quaternion(z=turned(yaw / 2).imag, w=turned(yaw / 2).real)
        poses.add(
            Odometry(header=header("odom", clock.utime()), pose=PoseWithCovariance(pose=Pose(orientation=rotation)))
        )
        await asyncio.sleep(0.05)
    seen_at = clock.monotonic() - LATE_S
    pose = poses.at(clock.utime() - round(LATE_S * 1e6) + AHEAD_US, clock.monotonic())
    assert pose is not None
    return abs(cmath.phase(pose.from_base(1.0 + 0j) / turned(TURN_RAD_S * seen_at)))


async def test_what_a_turning_robot_sees_is_placed_where_it_is() -> None:
    assert await bearing_error(lambda: AHEAD_US) < 0.02
    assert await bearing_error(lambda: None) < 0.02 + TURN_RAD_S * LATE_S, "by its arrival"
    assert await bearing_error(lambda: 0) == pytest.approx(TURN_RAD_S * LATE_S, abs=0.02), "as if it came from ahead"


async def test_a_module_compares_two_inputs_by_the_clocks_of_those_who_stamp_them() -> None:
    for stamped_on, measured, expected in (
        ({}, None, 0),
        ({"/odom": "base", "/detections": "base"}, None, 0),
        ({"/odom": "base", "/detections": "eye"}, AHEAD_US, AHEAD_US),
        ({"/odom": "base", "/detections": "eye"}, None, None),
    ):
        services = Services()
        services.offer(Clocks, Measured(measured))  # type: ignore[type-abstract]
        module = FollowPerson(context=RunContext(stamped_on=stamped_on, services=services))
        _name(module.odom, "/odom")
        _name(module.detections, "/detections")
        assert module.clock_ahead(module.detections, module.odom)() == expected


def _name(stream: In, topic: str) -> None:  # type: ignore[type-arg]
    from dimos_streams.bus import create_bus

    assert stream._spec is not None
    stream._source = create_bus("memq://"), f"{topic}#{stream._spec.message.msg_name}"
