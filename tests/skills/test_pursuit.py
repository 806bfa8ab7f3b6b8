"""The calculations under the skills: pursuit, steering, poses, frames."""

from __future__ import annotations

import asyncio
import cmath
import importlib
import math

import pytest

from dimos_streams import clock
from dimos_streams.skills.planar import Pose, PoseHistory, turned, wrapped
from dimos_streams.skills.pursuit import Gains, Limits, Target, approach
from dimos_streams.skills.sighting import sightings_of
from dimos_streams.skills.steering import Detour, Surroundings
from tests.helpers import run_virtual
from tests.skills.parts import Seen, frame, odometry

GAINS = Gains(distance=1.0, bearing=2.0, motion=1.0)
LIMITS = Limits(speed=1.0, turn=1.5)


def test_a_pose_maps_there_and_back() -> None:
    pose = Pose(2 - 1j, 0.7)
    assert pose.to_base(pose.from_base(1 + 3j)) == pytest.approx(1 + 3j)
    assert Pose(0j, math.pi / 2).to_base(2j) == pytest.approx(2 + 0j)
    assert wrapped(3 * math.pi / 2) == pytest.approx(-math.pi / 2)


def test_what_was_seen_is_placed_by_the_pose_of_that_instant() -> None:
    async def scenario() -> None:
        poses = PoseHistory()
        assert poses.latest() == Pose()
        for x in range(5):
            await asyncio.sleep(1.0)
            poses.add(odometry(float(x), utime=x * 1_000_000))
        assert poses.at(2_100_000, clock.monotonic()).position == 2
        assert poses.latest().position == 4

    run_virtual(scenario())


def test_the_filter_finds_a_steady_walk() -> None:
    target = Target(3 + 0j, 0.0)
    for tick in range(1, 40):
        target.add(3 + 0.7j * tick * 0.1, tick * 0.1)
    assert target.velocity == pytest.approx(0.7j, abs=0.02)
    assert target.expected(4.0) == pytest.approx(3 + 2.8j, abs=0.05)
    assert target.expected(60.0).imag < 3.3  # nobody is believed to walk on for a minute


def test_a_walking_person_is_matched_in_speed() -> None:
    target = Target(1.8 + 0j, 0.0)
    target.velocity = 0.7 + 0j
    velocity, turn = approach(target, 0.0, Pose(), 1.8, GAINS, LIMITS)
    assert velocity == pytest.approx(0.7)
    assert turn == 0.0


def test_limits_hold() -> None:
    velocity, turn = approach(Target(9 + 9j, 0.0), 0.0, Pose(), 1.8, GAINS, LIMITS)
    assert abs(velocity) <= 1.0
    assert turn == 1.5


def test_who_is_behind_is_faced_first() -> None:
    velocity, turn = approach(Target(-4 + 1j, 0.0), 0.0, Pose(), 1.8, GAINS, LIMITS)
    assert velocity == 0
    assert turn == 1.5


def _wall(x: float, left: float, right: float) -> list[complex]:
    return [complex(x, right + 0.05 * i) for i in range(round((left - right) / 0.05) + 1)]


def test_a_detour_takes_the_nearer_side_and_keeps_to_it() -> None:
    detour = Detour()
    assert detour.direction(Surroundings(), 0.3, 1.0) == 0.3
    right = detour.direction(Surroundings(_wall(0.9, left=0.6, right=-0.2)), 0.0, 1.0)
    assert right < 0
    assert Surroundings(_wall(0.9, left=0.6, right=-0.2)).free_distance(right) >= 1.0
    symmetric = Surroundings(_wall(0.9, left=0.3, right=-0.3))
    assert detour.direction(symmetric, 0.0, 1.0) < 0
    assert Detour().direction(symmetric, 0.0, 1.0) > 0


def test_where_nothing_is_free_the_wish_stays() -> None:
    ring = Surroundings([0.6 * turned(math.radians(degrees)) for degrees in range(0, 360, 5)])
    assert Detour().direction(ring, 0.2, 1.0) == 0.2
    assert ring.free_distance(0.0) == pytest.approx(0.6 - 0.33, abs=0.02)


def test_detections_that_say_nothing_are_left_out() -> None:
    message = frame(Seen(at=None), Seen(at=(1.0, 1.0), id="2"), utime=1)
    message.detections[0].results = []
    (sighting,) = sightings_of(message)
    assert sighting.point is not None
    assert cmath.phase(sighting.point) == pytest.approx(math.pi / 4)
    assert sighting.match("a dog") is None


def test_the_folder_is_no_package_of_its_own() -> None:
    with pytest.raises(ImportError, match=r"import dimos_streams\.skills instead"):
        importlib.import_module("skills")
