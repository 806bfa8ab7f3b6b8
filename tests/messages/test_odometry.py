"""Odometry from poses."""

from __future__ import annotations

import math

import pytest

from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, Quaternion
from dimos_streams.messages.odometry import OdometryFromPoses
from dimos_streams.messages.time import header

Step = tuple[float, float, float, float]
"""Seconds, x and y in metres, yaw in radians."""


def velocities(*steps: Step) -> list[tuple[float, float, float]]:
    """Ahead, to the left, and turn, of each pose."""
    convert, found = OdometryFromPoses(), []
    for seconds, x, y, yaw in steps:
        pose = Pose(position=Point(x=x, y=y), orientation=Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2)))
        odometry = convert(PoseStamped(header=header("world", round(seconds * 1e6)), pose=pose))
        assert odometry.pose.pose == pose
        twist = odometry.twist.twist
        found.append((round(twist.linear.x, 3), round(twist.linear.y, 3), round(twist.angular.z, 3)))
    return found


STILL = (0.0, 0.0, 0.0)


def test_velocity_is_in_the_frame_of_the_robot() -> None:
    assert velocities((1.0, 0, 0, math.pi / 2), (1.1, 0, 0.05, math.pi / 2)) == [STILL, (0.5, 0.0, 0.0)]
    assert velocities((1.0, 0, 0, math.pi / 2), (1.1, 0.05, 0, math.pi / 2)) == [STILL, (0.0, -0.5, 0.0)]


def test_a_turn_through_half_a_circle_is_a_small_one() -> None:
    assert velocities((1.0, 0, 0, 3.1), (1.1, 0, 0, -3.1)) == [STILL, (0.0, 0.0, 0.832)]


@pytest.mark.parametrize("later", [2.2, 0.9, 0.0])
def test_after_a_pause_or_with_a_clock_that_was_set_nobody_knows_a_velocity(later: float) -> None:
    before = (1.0, 0, 0, 0), (1.1, 0.1, 0, 0)
    assert velocities(*before, (later, 0.2, 0, 0)) == [STILL, (1.0, 0.0, 0.0), STILL]


def test_poses_at_almost_the_same_time_say_nothing_of_speed() -> None:
    steps = (1.0, 0, 0, 0), (1.1, 0.1, 0, 0), (1.101, 0.2, 0, 0), (1.2, 0.2, 0, 0)
    assert velocities(*steps) == [STILL, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)]


def test_a_pose_that_can_not_be_has_no_velocity() -> None:
    assert velocities((1.0, 0, 0, 0), (1.1, 0.1, 0, 0)) == [STILL, (1.0, 0.0, 0.0)]
    convert = OdometryFromPoses()
    broken = PoseStamped(header=header("world", 1_000_000), pose=Pose(position=Point(x=math.nan)))
    assert convert(broken).twist.twist.linear.x == 0.0
