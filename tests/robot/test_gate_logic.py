import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.operator.holding import STOP_ROBOT
from dimos_streams.robot.velocity import STILL, Velocity
from dimos_streams.robot.velocity_gate.config import VelocityGateConfig
from dimos_streams.robot.velocity_gate.logic import VelocityGateLogic

LIMITS = VelocityGateConfig.model_validate({})
PERIOD = 0.05
VALID = (0.05, 12.0)
UNSEEN = f"no ray of the scan was measured where the robot goes: at most {LIMITS.unseen_speed} m/s"

speeds = st.one_of(st.floats(), st.floats(-3.0, 3.0))
velocities = st.builds(Velocity, speeds, speeds, speeds)
ranges = st.lists(st.one_of(st.floats(0.0, 4.0), st.just(math.inf), st.just(math.nan)), min_size=36, max_size=36)
moments = st.lists(
    st.tuples(
        st.one_of(st.none(), st.tuples(st.sampled_from(["skill", "teleop"]), velocities)),
        st.one_of(st.none(), ranges),
    ),
    max_size=40,
)


def gate(*, needs_scan: bool = False) -> VelocityGateLogic:
    return VelocityGateLogic(LIMITS, needs_scan=needs_scan)


def scan_of(ranges: Sequence[float], step: float) -> LaserScan:
    """All around, from behind on, in steps of so many radians."""
    low, high = VALID
    return LaserScan(angle_min=-math.pi, angle_increment=step, range_min=low, range_max=high, ranges=ranges)


def see(logic: VelocityGateLogic, *points: tuple[float, float], now: float = 0.0) -> None:
    """A scan of one ray per degree that hits these points (bearing in degrees, metres) and nothing else."""
    hit = dict(points)
    logic.scan(scan_of([hit.get(degree, math.inf) for degree in range(-180, 180)], math.radians(1)), now)


def drive(logic: VelocityGateLogic, velocity: Velocity, *, now: float = 0.0, seconds: float = 3.0) -> Velocity:
    """Command steadily, scans staying as they are, and give the last output."""
    out = STILL
    for _ in range(round(seconds / PERIOD)):
        now += PERIOD
        if logic._scanned_at is not None:
            logic._scanned_at = now
        logic.command("skill", velocity, now)
        out = logic.decide(now)
    return out


@given(moments)
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_limits_hold_whatever_comes(history: list[tuple[tuple[str, Velocity] | None, list[float] | None]]) -> None:
    logic, before = gate(), STILL
    for step, (command, scan) in enumerate(history):
        now = step * PERIOD
        if command is not None:
            logic.command("teleop" if command[0] == "teleop" else "skill", command[1], now)
        if scan is not None:
            logic.scan(scan_of(scan, math.radians(10)), now)
        out = logic.decide(now)
        assert all(math.isfinite(value) for value in (out.vx, out.vy, out.wz))
        assert math.hypot(out.vx, out.vy) <= LIMITS.max_speed + 1e-9
        assert abs(out.wz) <= LIMITS.max_turn + 1e-9
        faster = math.hypot(out.vx, out.vy) - math.hypot(before.vx, before.vy)
        assert faster <= LIMITS.acceleration * PERIOD + 1e-9
        assert abs(out.wz) - abs(before.wz) <= LIMITS.turn_acceleration * PERIOD + 1e-9
        before = out


@pytest.mark.slow
@given(moments)
@settings(max_examples=100, deadline=None)
def test_a_stale_command_is_zero(history: list[tuple[tuple[str, Velocity] | None, list[float] | None]]) -> None:
    logic, last = gate(), -math.inf
    for step, (command, _) in enumerate(history):
        now = step * PERIOD
        if command is not None:
            logic.command("teleop" if command[0] == "teleop" else "skill", command[1], now)
            last = now
        out = logic.decide(now)
        if now - last > 0.35:
            assert out == STILL


@given(ranges, st.floats(-math.pi, math.pi), st.floats(0.1, 1.0))
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_no_motion_into_an_obstacle_nearer_than_the_stop_distance(
    scan: list[float], direction: float, speed: float
) -> None:
    logic = gate(needs_scan=True)
    logic.scan(scan_of(scan, math.radians(10)), 0.0)
    out = drive(logic, Velocity(speed * math.cos(direction), speed * math.sin(direction), 0.3))
    moved = math.hypot(out.vx, out.vy)
    assert out.wz == pytest.approx(0.3), "turning stays possible"
    for i, distance in enumerate(scan):
        if not VALID[0] <= distance <= VALID[1]:
            continue
        bearing = -math.pi + i * math.radians(10) - direction
        ahead, aside = distance * math.cos(bearing), abs(distance * math.sin(bearing))
        if ahead > 0.0 and aside < LIMITS.robot_radius:
            gap = ahead - math.sqrt(LIMITS.robot_radius**2 - aside**2)
            assert gap > LIMITS.stop_distance or moved < 1e-9
            way = moved * LIMITS.reaction_s + moved**2 / (2 * LIMITS.braking)
            assert way <= max(0.0, gap - LIMITS.stop_distance) + 1e-9, "it can still stop"


def test_an_obstacle_ahead_leaves_the_other_directions_free() -> None:
    logic = gate(needs_scan=True)
    see(logic, (0, 0.4))
    assert drive(logic, Velocity(0.5)) == STILL
    assert drive(logic, Velocity(-0.5), now=10.0).vx == pytest.approx(-0.5)
    assert drive(logic, Velocity(0.0, 0.5), now=20.0).vy == pytest.approx(0.5)
    assert drive(logic, Velocity(0.0, 0.0, 1.0), now=30.0).wz == pytest.approx(1.0)


def test_an_obstacle_beside_the_corridor_does_not_matter() -> None:
    logic = gate(needs_scan=True)
    see(logic, (90, 0.4), (-90, 0.4), (30, 0.8))
    assert drive(logic, Velocity(0.5)).vx == pytest.approx(0.5)


def test_the_speed_falls_with_the_distance() -> None:
    outputs = []
    for distance in (3.0, 1.0, 0.8, 0.6, 0.5):
        logic = gate(needs_scan=True)
        see(logic, (0, distance))
        outputs.append(drive(logic, Velocity(1.0)).vx)
    assert outputs[0] == pytest.approx(1.0)
    assert outputs == sorted(outputs, reverse=True)
    assert outputs[-1] == 0.0


@pytest.mark.parametrize("ahead", [0.6, 0.8, 1.0])
def test_what_reaction_and_braking_take_fits_before_an_obstacle(ahead: float) -> None:
    logic = gate()
    see(logic, (0, ahead))
    speed = drive(logic, Velocity(1.0)).vx
    way = speed * LIMITS.reaction_s + speed**2 / (2.0 * LIMITS.braking)
    assert way == pytest.approx(logic.free_distance(0.0) - LIMITS.stop_distance)


def test_each_scan_counts_anew() -> None:
    logic = gate(needs_scan=True)
    for now in (1.0, 2.0):
        see(logic, now=now)
        logic.command("skill", Velocity(0.1), now + PERIOD)
        logic.decide(now)
        assert logic.decide(now + PERIOD).vx > 0.0


def test_a_needed_scan_that_is_missing_or_stale_allows_turning_only() -> None:
    logic = gate(needs_scan=True)
    logic.decide(0.0)
    logic.command("skill", Velocity(0.5, 0.0, 0.2), 0.1)
    out = logic.decide(0.1)
    assert out.vx == 0.0
    assert out.wz == pytest.approx(0.2)
    see(logic, now=0.2)
    logic.command("skill", Velocity(0.5), 0.3)
    assert logic.decide(0.3).vx > 0.0
    logic.command("skill", Velocity(0.5), 0.75)
    assert logic.decide(0.75).vx == 0.0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ranges": []}, "has no rays: `ranges` is empty"),
        ({"ranges": [math.nan, 0.0, 0.01]}, "has no rays that were measured"),
        ({"ranges": [0.0] * 360, "range_min": 0.0}, "has no rays that were measured"),
        ({"ranges": [0.0] * 360, "range_min": -math.inf}, "has no rays that were measured"),
        ({"ranges": [5.0] * 360, "range_min": math.nan}, "has no rays that were measured"),
        ({"range_max": 0.0}, "can hit nothing: its range_min is 0.05 m, its range_max 0 m"),
        ({"range_max": math.nan}, "can hit nothing"),
        ({"angle_increment": math.nan}, "has angles that are none"),
        ({"angle_increment": 0.0}, "looks one way only: its 360 rays are 0 rad apart"),
        ({"angle_increment": 1e-30}, "looks one way only: its 360 rays are 1e-30 rad apart"),
        ({"angle_increment": -math.tau}, "looks one way only: its 360 rays are -6.28319 rad apart"),
        ({"ranges": [5.0]}, "looks one way only: it has one ray"),
    ],
)
def test_a_scan_that_says_nothing_is_none(changes: dict[str, Any], why: str) -> None:
    logic, blind = gate(needs_scan=True), scan_of([5.0] * 360, math.radians(1))
    for name, value in changes.items():
        setattr(blind, name, value)
    for step in range(10):
        logic.scan(blind, step * PERIOD)
        logic.command("skill", Velocity(0.5, 0.0, 0.2), step * PERIOD)
        out = logic.decide(step * PERIOD)
    assert out.vx == 0.0
    assert out.wz == pytest.approx(0.2)
    assert logic.trouble.startswith(f"the scan {why}")
    assert logic.trouble.endswith(": the gate only lets the robot turn")


@pytest.mark.parametrize("far", [math.inf, VALID[1] + 1.0])
def test_a_scan_of_nothing_near_lets_the_robot_drive(far: float) -> None:
    logic = gate(needs_scan=True)
    logic.scan(scan_of([far] * 360, math.radians(1)), 0.0)
    assert drive(logic, Velocity(0.5)).vx == pytest.approx(0.5)
    assert logic.trouble == ""


@pytest.mark.parametrize("nothing", [math.nan, 0.0, VALID[0] / 2, -1.0])
@pytest.mark.parametrize(("beside", "is_seen"), [(0, True), (19, True), (21, False), (60, False)])
def test_where_no_ray_was_measured_the_robot_creeps(nothing: float, beside: int, is_seen: bool) -> None:
    logic = gate(needs_scan=True)
    ranges = [nothing if abs(degree) <= beside else 5.0 for degree in range(-180, 180)]
    logic.scan(scan_of(ranges, math.radians(1)), 0.0)
    assert drive(logic, Velocity(0.5)).vx == pytest.approx(0.5 if is_seen else LIMITS.unseen_speed)
    assert logic.trouble == ("" if is_seen else UNSEEN)
    assert drive(logic, Velocity(-0.5), now=10.0).vx == pytest.approx(-0.5)
    assert logic.trouble == ""


@pytest.mark.parametrize("nearest", [0.0, VALID[0], 0.3])
def test_what_is_too_near_to_measure_stops_the_robot(nearest: float) -> None:
    logic = gate(needs_scan=True)
    scan = scan_of([-math.inf if abs(degree) < 5 else 5.0 for degree in range(-180, 180)], math.radians(1))
    scan.range_min = nearest
    logic.scan(scan, 0.0)
    assert drive(logic, Velocity(0.5)) == STILL
    assert drive(logic, Velocity(-0.5), now=10.0).vx == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("first", "last", "direction", "is_seen"),
    [
        (-60, 60, 0, True),
        (-60, 60, 75, True),
        (-60, 60, 90, False),
        (-60, 60, 180, False),
        (120, 240, 180, True),
        (120, 240, -170, True),
        (120, 240, 0, False),
        (300, 420, 0, True),
        (60, -60, 0, True),
        (60, -60, -120, False),
        (-180, 179, 180, True),
    ],
)
def test_where_no_ray_goes_the_robot_creeps(first: int, last: int, direction: int, is_seen: bool) -> None:
    logic, step = gate(needs_scan=True), 1 if last > first else -1
    scan = scan_of([math.inf] * (abs(last - first) + 1), math.radians(step))
    scan.angle_min = math.radians(first)
    logic.scan(scan, 0.0)
    way = math.radians(direction)
    out = drive(logic, Velocity(0.5 * math.cos(way), 0.5 * math.sin(way)))
    assert math.hypot(out.vx, out.vy) == pytest.approx(0.5 if is_seen else LIMITS.unseen_speed)
    assert logic.trouble == ("" if is_seen else UNSEEN)


def test_two_rays_that_look_away_from_each_other_see_little() -> None:
    logic = gate(needs_scan=True)
    logic.scan(scan_of([5.0, 5.0], math.pi), 0.0)
    assert drive(logic, Velocity(0.0, 0.5)).vy == pytest.approx(LIMITS.unseen_speed)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (STILL, STILL),
        (Velocity(-1.0, 0.0, -1.0), Velocity(-LIMITS.acceleration * PERIOD, 0.0, -LIMITS.turn_acceleration * PERIOD)),
        (Velocity(0.0, 1.0, 0.0), Velocity(0.0, LIMITS.acceleration * PERIOD, 0.0)),
        (Velocity(0.4, 0.0, 0.4), Velocity(0.4, 0.0, 0.4)),
        (Velocity(0.6, 0.8, 1.0), Velocity(0.6 * 0.675, 0.8 * 0.675, 1.0)),
    ],
    ids=["to stand", "back", "aside", "slower", "off its line"],
)
def test_braking_is_at_once_and_speeding_up_is_not(command: Velocity, expected: Velocity) -> None:
    logic = gate()
    assert drive(logic, Velocity(1.0, 0.0, 1.0)) == Velocity(1.0, 0.0, 1.0)
    out = drive(logic, command, now=3.0, seconds=PERIOD)
    assert (out.vx, out.vy, out.wz) == pytest.approx((expected.vx, expected.vy, expected.wz))


def test_a_hold_is_obeyed_at_once_and_not_by_and_by() -> None:
    logic = gate()
    drive(logic, Velocity(1.0, 0.0, 1.0))
    logic.command("skill", Velocity(1.0, 0.0, 1.0), 3.0)
    logic.hold(Hold(source="agent", seq=1, hold=True, valid_s=15.0), 3.0)
    assert logic.decide(3.05) == STILL


def test_teleop_outranks_skills_and_holds_them_off() -> None:
    logic = gate()
    logic.decide(0.0)
    logic.command("skill", Velocity(0.5), 0.1)
    logic.command("teleop", Velocity(-0.02), 0.1)
    assert logic.decide(0.1).vx == pytest.approx(-0.02)
    logic.command("skill", Velocity(0.5), 0.5)
    assert logic.decide(0.5) == STILL
    logic.command("skill", Velocity(0.5), 0.7)
    assert logic.decide(0.7).vx > 0.0


def test_who_drives_by_hand_counts_as_commanding_for_as_long_as_skills_wait() -> None:
    logic = gate()
    logic.command("teleop", STILL, 0.0)
    assert logic.commanded(LIMITS.teleop_hold_s)
    assert not logic.commanded(LIMITS.teleop_hold_s + PERIOD)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_zero(bad: float) -> None:
    logic = gate()
    assert drive(logic, Velocity(0.5)).vx == pytest.approx(0.5)
    assert drive(logic, Velocity(bad, 0.3, 0.3), now=3.0) == STILL


def test_a_hold_stops_skills_and_not_teleop_until_it_is_released() -> None:
    logic = gate()
    assert drive(logic, Velocity(0.5)).vx == pytest.approx(0.5)
    logic.holds.update(Hold(source="agent", seq=1, hold=True, valid_s=15.0), 3.0)
    assert drive(logic, Velocity(0.5), now=3.0) == STILL
    logic.command("teleop", Velocity(-0.02), 6.5)
    assert logic.decide(6.5).vx == pytest.approx(-0.02)
    logic.holds.update(Hold(source="console", seq=1, hold=True, valid_s=15.0), 7.0)
    logic.holds.update(Hold(source="agent", seq=2, hold=False, valid_s=15.0), 7.0)
    assert drive(logic, Velocity(0.5), now=7.0) == STILL, "another one holds it still"
    logic.holds.update(Hold(source="console", seq=2, hold=False, valid_s=15.0), 10.0)
    assert drive(logic, Velocity(0.5), now=10.0).vx == pytest.approx(0.5)


def test_a_stop_that_lapses_at_once_leaves_others_the_time_to_repeat_theirs() -> None:
    logic, moved = gate(), []
    for step in range(100):
        now = step * PERIOD
        if step % 4 == 0:
            logic.hold(Hold(source=STOP_ROBOT, seq=step, utime=step, hold=True, valid_s=60.0), now)
        if step % 20 == 10:
            logic.hold(Hold(source=STOP_ROBOT, seq=2**60, utime=step, hold=True, valid_s=1e-6), now)
        logic.command("teleop", Velocity(1.0), now)
        moved.append(logic.decide(now))
    assert set(moved) == {STILL}
    logic.hold(Hold(source=STOP_ROBOT, seq=2**60, utime=100, hold=True, valid_s=1e-6), 10.0)
    logic.command("teleop", Velocity(1.0), 10.4)
    assert logic.decide(10.4) == STILL, "as after a release"
    logic.command("teleop", Velocity(1.0), 10.6)
    assert logic.decide(10.6) != STILL


def test_the_end_of_a_stop_moves_nothing_that_others_have_stopped_too() -> None:
    logic, moved = gate(), []
    ours = theirs = 0
    for step in range(200):
        now = step * PERIOD
        if step % 4 == 0:
            ours += 1
            logic.hold(Hold(source=STOP_ROBOT, seq=ours, utime=ours, hold=True, valid_s=60.0), now)
        if 40 <= step < 60 and step % 4 == 2:  # another run's bridge, whose clock is ahead
            theirs += 1
            logic.hold(Hold(source=STOP_ROBOT, seq=theirs, utime=10**15 + theirs, hold=False, valid_s=60.0), now)
        logic.command("teleop", Velocity(1.0), now)
        moved.append(logic.decide(now))
    assert set(moved) == {STILL}
    logic.hold(Hold(source=STOP_ROBOT, seq=ours + 1, utime=ours + 1, hold=False, valid_s=60.0), 10.0)
    logic.command("teleop", Velocity(1.0), 10.3)
    assert logic.decide(10.3) == STILL
    logic.command("teleop", Velocity(1.0), 10.6)
    assert logic.decide(10.6) != STILL
