"""Poses on the floor, from whatever numbers a message holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import pose_fault
from dimos_streams.messages.planar import FARTHEST, planar_pose

ANY = st.floats()
"""Not-a-number, infinities and numbers whose squares are too large included."""


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-math.pi, math.pi))
def test_a_turn_about_the_vertical_axis_comes_back(x: float, y: float, yaw: float) -> None:
    pose = Pose(position=Point(x=x, y=y), orientation=Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2)))
    found = planar_pose(pose)
    assert found is not None
    assert found[:2] == (x, y)
    assert abs(math.remainder(found[2] - yaw, math.tau)) < 1e-9


@pytest.mark.parametrize("length", [2e-3, 0.5, 2.0, 1e5])
def test_the_length_of_an_orientation_changes_no_heading(length: float) -> None:
    turn = Quaternion(z=length * math.sin(0.75), w=length * math.cos(0.75))
    found = planar_pose(Pose(orientation=turn))
    assert found is not None
    assert found.yaw == pytest.approx(1.5)


@pytest.mark.parametrize("w", [0.0, 1e-9, -1e-4])
def test_an_orientation_of_no_length_is_a_fault_and_not_ahead(w: float) -> None:
    pose = Pose(position=Point(x=1.0), orientation=Quaternion(w=w))
    assert planar_pose(pose) is None
    fault = pose_fault(Odometry(pose=PoseWithCovariance(pose=pose)))
    assert fault == "its orientation is all zero, or nearly so, which is no quaternion: heading 0 is w = 1"


@given(ANY, ANY, ANY, ANY, ANY, ANY)
def test_hostile_numbers_give_none_or_a_pose(x: float, y: float, qx: float, qy: float, qz: float, qw: float) -> None:
    found = planar_pose(Pose(position=Point(x=x, y=y), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)))
    assert found is None or (math.hypot(*found[:2]) <= FARTHEST and abs(found[2]) <= math.pi)
