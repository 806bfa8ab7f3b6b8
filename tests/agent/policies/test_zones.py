"""Restricted zones: which motions lead into one, and which polygons are zones."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dimos_streams.agent.policies.gates.matching.zones import Zone, Zones
from dimos_streams.common.polygon import inside
from dimos_streams.messages.planar import PlanarPose

SQUARE = ((1.0, 1.0), (3.0, 1.0), (3.0, 3.0), (1.0, 3.0))


def test_zones() -> None:
    zones = Zones([Zone(name="lab", polygon=SQUARE)])
    outside, within = PlanarPose(0, 2, 0), PlanarPose(2, 2, 0)
    assert zones.entered({"x": 2, "y": 2}, None) == "lab"
    assert zones.entered({"x": 1, "y": 2}, None) == "lab"
    assert zones.entered({"x": "2.0", "y": 2}, None) == "lab"
    assert zones.entered({"x": "inf", "y": "nan"}, outside) == ""
    assert zones.entered({"x": 5, "y": 2}, outside) == "lab"
    assert zones.entered({"x": 5, "y": 2}, None) == ""
    assert zones.entered({"x": 0, "y": 5}, outside) == ""
    assert zones.entered({"distance_m": 0.5}, outside) == ""
    assert zones.entered({"distance_m": 2}, outside) == "lab"
    assert zones.entered({"distance_m": -2}, outside) == ""
    assert zones.entered({"distance_m": 2}, None) == ""
    for x, y, yaw, name in (2, 0, math.pi / 2, "lab"), (2, 0, -math.pi / 2, ""), (2, 4, -math.pi / 2, "lab"):
        assert zones.entered({"distance_m": 2}, PlanarPose(x, y, yaw)) == name
    assert zones.entered({"x": 2.5, "y": 2}, within) == ""
    assert zones.entered({"x": 9, "y": 2}, within) == ""
    assert zones.entered({"x": True, "y": 2}, None) == ""
    assert zones.entered({}, outside) == ""
    hole = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 1.0), (0.0, 4.0))
    assert not inside(hole, (2.0, 3.0))
    assert inside(hole, (0.5, 3.0))
    for line in ((0, 0), (1, 1), (0, 0)), ((0, 0), (1, 1), (2, 2)), ((0, 0), (0, 0), (0, 0)):
        with pytest.raises(ValueError, match="three corners that are not on one line"):
            Zone(name="line", polygon=line)
    crossed = ((0, 0), (1, 1), (1, 0), (0, 1))
    assert Zone(name="crossed", polygon=crossed).polygon == crossed


Corner = tuple[int, int]
CORNERS = st.tuples(st.integers(-4, 4), st.integers(-4, 4))


def side(a: Corner, b: Corner, point: Corner) -> int:
    """Positive for a point to the left of the way from ``a`` to ``b``."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


@pytest.mark.slow
@given(st.lists(CORNERS, min_size=3, max_size=3), CORNERS, CORNERS)
def test_a_way_enters_a_zone_that_it_touches_and_did_not_begin_in(
    corners: list[Corner], start: Corner, goal: Corner
) -> None:
    assume(side(corners[0], corners[1], corners[2]) != 0)
    to_the_left = corners if side(*corners) > 0 else corners[::-1]
    edges = [(to_the_left[i - 1], to_the_left[i]) for i in range(3)]
    enters, leaves = Fraction(0), Fraction(1)
    for a, b in edges:
        # Within the half plane of each edge for a part of the way, and so for the triangle.
        at_start, at_goal = side(a, b, start), side(a, b, goal)
        if at_start < 0 or at_goal < 0:
            if at_start < 0 and at_goal < 0:
                leaves = Fraction(-1)
            elif at_start < 0:
                enters = max(enters, Fraction(at_start, at_start - at_goal))
            else:
                leaves = min(leaves, Fraction(at_start, at_start - at_goal))
    was_inside = all(side(a, b, start) >= 0 for a, b in edges)
    polygon = tuple((float(x), float(y)) for x, y in corners)
    assert inside(polygon, start) == was_inside
    entered = Zones([Zone(name="lab", polygon=polygon)]).entered({"x": goal[0], "y": goal[1]}, PlanarPose(*start, 0))
    assert entered == ("lab" if enters <= leaves and not was_inside else "")
