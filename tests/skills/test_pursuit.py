"""The calculations under the skills: pursuit, steering, poses, frames."""

from __future__ import annotations

import asyncio
import cmath
import importlib
import math
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.messages.sensor_msgs import CameraInfo, LaserScan
from dimos_streams.messages.time import utime_of
from dimos_streams.skill import Call
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.moving.planar import Pose, clamped, turned, wrapped
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.skills.moving.pursuit import Gains, PursuitLimits, Target, approach
from dimos_streams.skills.moving.steering import STEPS, Detour, Surroundings, surroundings_of
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.skills.patrol_report import Encounter, PatrolReport
from dimos_streams.skills.seeing.frames import DetectionFrame
from dimos_streams.skills.seeing.sighting import Lens, lens_fault, sightings_of
from dimos_streams.skills.seeing.watch import PersonWatch
from dimos_streams.testing import ModuleHarness
from tests.skills.detections import GREEN, RED, Seen, frame, odometry

GAINS = Gains(distance=1.0, bearing=2.0, motion=1.0)
LIMITS = PursuitLimits(speed=1.0, turn=1.5)


def test_a_pose_maps_there_and_back() -> None:
    pose = Pose(2 - 1j, 0.7)
    assert pose.to_base(pose.from_base(1 + 3j)) == pytest.approx(1 + 3j)
    assert Pose(0j, math.pi / 2).to_base(2j) == pytest.approx(2 + 0j)
    assert wrapped(3 * math.pi / 2) == pytest.approx(-math.pi / 2)


@pytest.mark.virtual_time
async def test_what_was_seen_is_placed_by_the_pose_of_that_instant() -> None:
    poses = PoseHistory()
    assert poses.latest() == Pose()
    for x in range(5):
        await asyncio.sleep(1.0)
        poses.add(odometry(float(x), utime=x * 1_000_000))
    assert poses.at(2_100_000, clock.monotonic()) == Pose(2 + 0j)
    assert poses.latest().position == 4


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
    assert detour.direction(Surroundings((), 0.33), 0.3, 1.0) == 0.3
    right = detour.direction(Surroundings(_wall(0.9, left=0.6, right=-0.2), 0.33), 0.0, 1.0)
    assert right < 0
    assert Surroundings(_wall(0.9, left=0.6, right=-0.2), 0.33).free_distance(right) >= 1.0
    symmetric = Surroundings(_wall(0.9, left=0.3, right=-0.3), 0.33)
    assert detour.direction(symmetric, 0.0, 1.0) < 0
    assert Detour().direction(symmetric, 0.0, 1.0) > 0


def test_where_nothing_is_free_the_heading_stays() -> None:
    ring = Surroundings([0.6 * turned(math.radians(degrees)) for degrees in range(0, 360, 5)], 0.33)
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


@pytest.mark.slow
@given(
    st.complex_numbers(min_magnitude=0.1, max_magnitude=8.0),
    st.floats(-math.pi, math.pi),
    st.complex_numbers(max_magnitude=3.0),
    st.floats(0.0, 5.0),
)
def test_whoever_is_approached_however_is_faced_and_not_run_over(
    point: complex, yaw: float, motion: complex, at: float
) -> None:
    target, pose = Target(point, 0.0), Pose(0.3 - 0.2j, yaw)
    target.velocity = motion
    seen = pose.to_base(target.expected(at))
    velocity, turn = approach(target, at, pose, 1.8, Gains(1.0, 2.0, 0.0), LIMITS)
    assert abs(velocity) <= LIMITS.speed + 1e-9
    assert abs(turn) <= LIMITS.turn
    assert turn * cmath.phase(seen) >= 0.0
    if abs(velocity) > 1e-6:
        nearer = (velocity * seen.conjugate()).real
        assert (nearer > 0.0) == (abs(seen) > 1.8)
        assert abs((velocity * seen.conjugate()).imag) < 1e-6, "straight at them, or straight back"
        assert seen.real > 0.0, "never towards who is not in front"


def test_a_filter_believes_nobody_to_be_faster_than_people_are_and_ignores_what_is_old() -> None:
    target = Target(0j, 0.0)
    for tick in range(1, 30):
        target.add(5.0 * tick * 0.1 + 0j, tick * 0.1)
        assert abs(target.velocity) <= 1.6 + 1e-9
    assert target.velocity == pytest.approx(1.6)
    before = (target.point, target.velocity, target.seen_at)
    target.add(-9 + 0j, target.seen_at)
    target.add(-9 + 0j, 1.0)
    assert (target.point, target.velocity, target.seen_at) == before
    assert target.expected(0.0) == target.point, "not back in time"


def test_a_lens_is_the_camera_s_where_it_gives_one_and_the_stock_robot_s_else() -> None:
    reported = CameraInfo(K=[100.0, 0.0, 50.0, 0.0, 90.0, 40.0, 0.0, 0.0, 1.0])
    assert Lens.of(reported) == Lens(100.0, 50.0)
    assert Lens.of(reported).bearing(50.0) == 0.0
    assert Lens.of(reported).bearing(-50.0) == pytest.approx(math.pi / 4)
    assert Lens.of(None) == Lens()
    assert Lens().bearing(0.0) == pytest.approx(math.radians(39.0), abs=0.01)


@pytest.mark.parametrize(
    ("focal_length", "centre", "why"),
    [
        (0.0, 0.0, "its focal length, K[0], is 0; "),
        (math.nan, 50.0, "its focal length, K[0], is nan; "),
        (math.inf, 50.0, "its focal length, K[0], is inf; "),
        (100.0, math.nan, "its centre, K[2], is nan; "),
        (100.0, -math.inf, "its centre, K[2], is -inf; "),
    ],
)
def test_a_lens_that_gives_no_directions_is_none(focal_length: float, centre: float, why: str) -> None:
    reported = CameraInfo(K=[focal_length, 0.0, centre, 0.0, 90.0, 40.0, 0.0, 0.0, 1.0])
    assert lens_fault(reported).startswith(why)
    assert Lens.of(reported) == Lens()
    assert lens_fault(CameraInfo(K=[])) == "its K has 0 numbers, not 9"


def test_what_is_not_a_number_turns_and_drives_nothing() -> None:
    assert clamped(math.nan, 1.5) == 0.0
    assert [clamped(value, 1.5) for value in (math.inf, -math.inf, 0.3)] == [1.5, -1.5, 0.3]
    nowhere = [Seen(at=None, column=column) for column in (math.nan, math.inf, -math.inf)]
    assert [each.id for each in sightings_of(frame(*nowhere, Seen(column=math.nan, id="7")))] == ["7"]


def test_a_sighting_is_what_fits_best_and_where_it_can_be() -> None:
    message = frame(Seen(label="dog", at=(3.0, 4.0), column=100.0), Seen(at=(1e15, 0.0)))
    message.detections[0].results.append(Seen(label=RED, score=0.4).message().results[0])
    seen, far = sightings_of(message)
    assert (seen.label, seen.point, seen.box) == ("dog", 3 + 4j, (80.0, 60.0, 120.0, 180.0))
    match = seen.match("person in red")
    assert match is not None
    assert match.label == RED
    assert match.score == pytest.approx(0.4)
    assert far.point is None, "no depth is that much"
    assert far.bearing(Lens(100.0, 60.0)) == pytest.approx(-math.pi / 4)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("change", "points"),
    [
        ({}, 3),
        ({"range_max": 1.4}, 2),
        ({"range_min": 1.2}, 2),
        ({"angle_min": math.nan}, 0),
        ({"angle_increment": math.inf}, 0),
        ({"angle_min": 100.0}, 0),
    ],
)
async def test_of_a_scan_only_what_is_near_and_measured_is_around(change: dict[str, float], points: int) -> None:
    async with ModuleHarness(Drive) as harness:
        assert not surroundings_of(harness.module.scan, 0.33)._points
        ranges = [1.0, 1.4, 1.9, 2.1, 0.05, math.nan, math.inf]
        scan = LaserScan(angle_min=-0.5, angle_increment=0.5, range_min=0.1, range_max=12.0, ranges=ranges)
        for name, value in change.items():
            setattr(scan, name, value)
        harness.feed("scan", scan)
        await asyncio.sleep(0.4)
        around = surroundings_of(harness.module.scan, 0.33)
        assert len(around._points) == points
        if not change:
            assert around._points == pytest.approx([1.0 * turned(-0.5), 1.4 + 0j, 1.9 * turned(0.5)], abs=1e-6)
        await asyncio.sleep(0.2)
        assert not surroundings_of(harness.module.scan, 0.33)._points


@pytest.mark.slow
@given(st.floats(-3.0, 3.0), st.lists(st.complex_numbers(min_magnitude=0.4, max_magnitude=3.0), max_size=12))
def test_a_detour_is_free_and_the_nearest_that_is(wanted: float, points: list[complex]) -> None:
    around = Surroundings(points, 0.33)
    found = Detour().direction(around, wanted, 0.9)
    if around.free_distance(found) < 0.9:
        assert found == wanted
        free = [step for step in STEPS for side in (1, -1) if around.free_distance(wanted + side * step) >= 0.9]
        assert free == []
    else:
        nearer = [step for step in (0.0, *STEPS) if step < abs(found - wanted) - 1e-6]
        assert all(around.free_distance(wanted + side * step) < 0.9 for step in nearer for side in (1, -1))


@pytest.mark.virtual_time
async def test_a_skill_that_ends_its_own_calls_waits_for_them_and_says_which_hang() -> None:
    calls, cancelled = OwnCalls(), []

    class Skills:
        async def cancel(self, call_id: str, reason: str) -> None:
            cancelled.append((call_id, reason))

    by = cast(Call, SimpleNamespace(id="stop", skills=Skills()))

    async def work(name: str, ends_after_s: float) -> None:
        with calls.running(cast(Call, SimpleNamespace(id=name)), f"doing {name}"):
            await asyncio.sleep(ends_after_s)

    assert await calls.end(by, "enough") == []
    quick = [asyncio.create_task(work("a", 0.6)), asyncio.create_task(work("b", 0.1))]
    await asyncio.sleep(0.0)
    began = clock.monotonic()
    assert await calls.end(by, "enough") == ["doing a", "doing b"]
    assert clock.monotonic() - began == pytest.approx(0.6)
    assert cancelled[:2] == [("a", "enough"), ("b", "enough")]
    assert cancelled.count(("a", "enough")) == 3, "the bus may lose a message"
    await asyncio.gather(*quick)
    hanging = asyncio.create_task(work("c", 60.0))
    await asyncio.sleep(0.0)
    with pytest.raises(SkillError, match="not ended within 2 s: doing c"):
        await calls.end(by, "enough")
    assert clock.monotonic() - began == pytest.approx(2.6, abs=0.3)
    hanging.cancel()


def test_what_a_guard_reports_reads_well() -> None:
    met = Encounter(label=RED, utime=1, x=1.26, y=-2.0, followed_s=9.6, ended="x")
    unplaced = Encounter(label=GREEN, utime=1, x=None, y=None, followed_s=0.0, ended="x")
    assert str(met) == f"{RED} at (1.3, -2.0), followed for 10 s"
    assert str(unplaced) == GREEN
    report = PatrolReport(rounds=1, reached=2, missed=1, met=2, encounters=(met, unplaced), home_m=0.126)
    assert str(report) == (
        f"Patrolled 1 round, 2 way-points, 1 could not be reached. Met {met} and {unplaced}."
        " Ended 0.13 m from where it began."
    )
    assert str(PatrolReport(rounds=3, reached=6, missed=0, met=0, encounters=())) == (
        "Patrolled 3 rounds, 6 way-points. Met nobody."
    )


@pytest.mark.virtual_time
async def test_who_walks_on_is_expected_where_they_are_by_now() -> None:
    poses = PoseHistory()
    watch = PersonWatch("person in red", poses, clock.monotonic())
    for _ in range(40):
        poses.add(odometry())
        seen = frame(Seen(at=(2.0, 0.7 * clock.monotonic())))
        stamp = utime_of(seen.header)
        assert watch.see(DetectionFrame(seen, stamp, stamp, clock.monotonic()), clock.monotonic())
        await asyncio.sleep(0.1)
    for _ in range(3):
        now = clock.monotonic()
        assert watch.target is not None
        expected = watch.target.expected(watch.target_time(now))
        assert expected == pytest.approx(complex(2.0, 0.7 * now), abs=0.04)
        await asyncio.sleep(0.1)


@pytest.mark.virtual_time
async def test_in_a_frame_from_before_the_known_poses_nobody_is_recognised() -> None:
    poses = PoseHistory()
    poses.add(odometry(utime=20_000_000))
    watch = PersonWatch("person in red", poses, clock.monotonic())
    for stamp, is_seen in ((8_000_000, False), (20_000_000, True)):
        seen = frame(Seen(at=(2.0, 0.0)), utime=stamp)
        assert watch.see(DetectionFrame(seen, stamp, stamp, clock.monotonic()), clock.monotonic()) is is_seen
    assert watch.target is not None
    assert watch.target.point == 2.0


@pytest.mark.virtual_time
async def test_who_is_found_again_elsewhere_has_not_run_there() -> None:
    watch = PersonWatch("person in red", PoseHistory(), clock.monotonic())

    def see(x: float, y: float, track: str) -> None:
        seen = frame(Seen(at=(x, y), id=track))
        stamp = utime_of(seen.header)
        assert watch.see(DetectionFrame(seen, stamp, stamp, clock.monotonic()), clock.monotonic())

    see(2.0, 0.0, "1")
    await asyncio.sleep(1.0)
    watch.let_go()
    see(5.0, 4.0, "2")
    assert watch.target is not None
    assert (watch.target.point, watch.target.velocity) == (5 + 4j, 0j)
