"""Poses on the floor, from whatever numbers a message holds."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.messages.geometry_msgs import Point, Pose, Quaternion
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


@given(ANY, ANY, ANY, ANY, ANY, ANY)
def test_hostile_numbers_give_none_or_a_pose(x: float, y: float, qx: float, qy: float, qz: float, qw: float) -> None:
    found = planar_pose(Pose(position=Point(x=x, y=y), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)))
    assert found is None or (math.hypot(*found[:2]) <= FARTHEST and abs(found[2]) <= math.pi)
