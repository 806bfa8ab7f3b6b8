"""``drive`` on the simulated robot, and against odometry that the test holds."""

from __future__ import annotations

import asyncio
import cmath
import json
import math
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.moving.planar import wrapped
from dimos_streams.testing import HarnessCall, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import hold_up
from tests.skills.detections import odometry
from tests.skills.robot_in_a_room import Room, room_with

START = {"start_x": -2.4, "start_y": -0.9, "start_yaw_deg": 0.0}
EMPTY = {"people": [], **START}


def _at(room: Room) -> tuple[float, float, float]:
    pose = room.simulator.world.pose()
    return pose.x, pose.y, math.degrees(pose.yaw)


def _measured(call: HarnessCall, name: str) -> float:
    """A value of a call's result."""
    return float(call.events[-1].data["result"][name])


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize("distance", [1.5, -0.8])
async def test_move(distance: float) -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("move", distance_m=distance)
        reported = await call.answer()
        await room.until(room.is_still, timeout_s=1.0)
        moved = _measured(call, "moved_m")
        assert reported.startswith(f"Moved {moved:g} m (asked: {distance:g} m); now at x ")
        assert moved == pytest.approx(_at(room)[0] + 2.4, abs=0.05)
        assert _at(room) == pytest.approx((-2.4 + distance, -0.9, 0.0), abs=0.08)
        remaining = [event.data["remaining_m"] for event in call.events if event.type == "progress"]
        assert len(remaining) >= 3
        assert remaining == sorted(remaining, reverse=True)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize("angle", [90.0, -45.0, 400.0])
async def test_turn(angle: float) -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("turn", angle_deg=angle)
        reported = await call.answer()
        await room.until(room.is_still, timeout_s=1.0)
        x, y, yaw = _at(room)
        turned = _measured(call, "turned_deg")
        assert reported.startswith(f"Turned {turned:g} deg (asked: {angle:g} deg); now at")
        assert math.remainder(yaw - turned, 360.0) == pytest.approx(0.0, abs=2.0)
        assert (x, y) == pytest.approx((-2.4, -0.9), abs=0.02)
        assert math.remainder(yaw - angle, 360.0) == pytest.approx(0.0, abs=4.0)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("B6")
@pytest.mark.parametrize(
    ("skill", "arguments"),
    [("move", {"distance_m": 1.2}), ("turn", {"angle_deg": 80.0}), ("go_to", {"x": -1.4, "y": -0.4})],
)
async def test_what_was_driven_is_taken_back_to_where_it_began(skill: str, arguments: dict[str, Any]) -> None:
    async with room_with(Drive, **EMPTY) as room:
        before = _at(room)
        call = await room.harness.call(skill, **arguments)
        await call.result()
        assert _at(room) != pytest.approx(before, abs=0.5)
        back = await room.harness.call("go_back", arguments=arguments, call_id=call.id)
        await back.result()
        await room.until(room.is_still, timeout_s=1.0)
        x, y, yaw = _at(room)
        assert (x, y) == pytest.approx(before[:2], abs=0.15)
        assert math.remainder(yaw - before[2], 360.0) == pytest.approx(0.0, abs=4.0)
        unknown = await room.harness.call("go_back", arguments=arguments, call_id="nobody")
        with pytest.raises(SkillError, match="where call 'nobody' began is not known"):
            await unknown.result()


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("B6")
async def test_a_move_is_taken_back_to_where_it_began_whoever_has_turned_the_robot_since() -> None:
    async with room_with(Drive, **EMPTY) as room:
        before = _at(room)
        arguments: dict[str, Any] = {"distance_m": 1.2}
        call = await room.harness.call("move", **arguments)
        await call.result()
        await (await room.harness.call("turn", angle_deg=50.0)).result()
        await (await room.harness.call("go_back", arguments=arguments, call_id=call.id)).result()
        await room.until(room.is_still, timeout_s=1.0)
        x, y, yaw = _at(room)
        assert (x, y) == pytest.approx(before[:2], abs=0.15)
        assert math.remainder(yaw - before[2], 360.0) == pytest.approx(0.0, abs=4.0)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("radius", "goes_straight"), [(0.22, True), (0.4, False)])
async def test_a_wide_robot_does_not_steer_into_a_narrow_gap(radius: float, goes_straight: bool) -> None:
    async with ModuleHarness(Drive, {"robot_radius": radius}) as harness:
        posts = [math.inf] * 61
        posts[30 - 20] = posts[30 + 20] = 0.45 / math.sin(math.radians(40))  # 0.45 m to each side
        step = math.radians(2)
        scan = LaserScan(angle_min=-30 * step, angle_increment=step, range_min=0.1, range_max=12.0, ranges=posts)
        harness.feed("scan", scan)
        call = await harness.call("go_to", x=2.0, y=0.0)
        await asyncio.sleep(0.0)
        harness.feed("odom", odometry(0.0))
        await asyncio.sleep(0.1)
        (command,) = harness.sent("cmd_vel")
        assert (abs(command.linear.y) < 1e-6) is goes_straight
        call.cancel()
        await call.closed()


@pytest.mark.virtual_time
@pytest.mark.parametrize("angle", [1.0, -0.5, 3.0])
async def test_a_small_turn_is_made_and_measured(angle: float) -> None:
    """Also where it is less than the tolerance of large ones."""
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("turn", angle_deg=angle)
        reported = await call.answer()
        await room.until(room.is_still, timeout_s=1.0)
        assert _at(room)[2] == pytest.approx(angle, abs=0.25 * abs(angle))
        turned = _measured(call, "turned_deg")
        assert turned == pytest.approx(_at(room)[2], abs=0.1 * abs(angle))
        assert f"Turned {turned:g} deg (asked: {angle:g} deg)" in reported


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize("distance", [0.03, -0.04])
async def test_a_small_move_is_made_and_measured(distance: float) -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("move", distance_m=distance)
        await call.result()
        await room.until(room.is_still, timeout_s=1.0)
        assert _at(room)[0] + 2.4 == pytest.approx(distance, abs=0.25 * abs(distance))
        assert _measured(call, "moved_m") == pytest.approx(_at(room)[0] + 2.4, abs=0.005)


@pytest.mark.virtual_time
async def test_what_does_not_turn_is_not_reported_as_turned() -> None:
    """A robot that stands, whatever is commanded."""
    async with ModuleHarness(Drive, {"blocked_after_s": 1.0}) as harness:
        harness.module.spawn(_stand(harness), name="stand")
        for skill, amount in (("turn", {"angle_deg": 1}), ("move", {"distance_m": 0.02})):
            call = await harness.call(skill, **amount)
            with pytest.raises(SkillError, match=r"blocked after 0\.0"):
                await call.result()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("before", "during", "why"),
    [
        (None, None, "no scan has ever come on /scan#sensor_msgs.LaserScan"),
        (LaserScan(range_max=5.0, angle_increment=0.1, ranges=[4.0] * 9), None, r"no scan for \d+\.\d s"),
        (None, LaserScan(), "the scan has no rays: `ranges` is empty"),
    ],
    ids=["never", "silent", "empty"],
)
async def test_who_is_blocked_for_want_of_a_scan_says_so(
    before: LaserScan | None, during: LaserScan | None, why: str
) -> None:
    async with ModuleHarness(Drive, {"blocked_after_s": 1.0}) as harness:
        if before is not None:
            harness.feed("scan", before)
        harness.module.spawn(_stand(harness, during), name="stand")
        goals: dict[str, dict[str, Any]] = {"move": {"distance_m": 0.5}, "go_to": {"x": 0.5, "y": 0.0}}
        for skill, goal in goals.items():
            call = await harness.call(skill, **goal)
            with pytest.raises(SkillError, match=f"{why}: the gate only lets the robot turn; standing at x "):
                await call.result()


async def _obey(harness: ModuleHarness) -> None:
    """A robot that does as it is told, from the point (0, 0) on."""
    position, yaw, step_s = 0j, 0.0, 0.05
    while True:
        harness.feed("odom", odometry(position.real, position.imag, yaw))
        await asyncio.sleep(step_s)
        for command in harness.sent("cmd_vel")[-1:]:
            position += complex(command.linear.x, command.linear.y) * cmath.rect(step_s, yaw)
            yaw += command.angular.z * step_s


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill", "arguments"),
    [("move", {"distance_m": 0.2}), ("turn", {"angle_deg": 20.0}), ("go_to", {"x": 0.2, "y": 0.0})],
)
async def test_a_robot_that_may_only_be_slow_is_not_blocked(skill: str, arguments: dict[str, Any]) -> None:
    config = {"max_speed": 0.005, "max_turn": 0.02, "sidesteps": 0}
    async with ModuleHarness(Drive, config) as harness:
        harness.module.spawn(_obey(harness), name="obey")
        call = await harness.call(skill, **arguments)
        closed = await call.closed(timeout_s=120.0)
        assert closed.outcome is Outcome.COMPLETED, closed.text


async def _stand(harness: ModuleHarness, scan: LaserScan | None = None) -> None:
    while True:
        if scan is not None:
            harness.feed("scan", scan)
        harness.feed("odom", odometry())
        await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_go_to() -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("go_to", x=-3.5, y=1.0)
        await call.wait_for(lambda event: event.type == "progress")
        shown = json.loads(room.harness.module.state_json)["scene"]
        assert shown == {"goal": {"x": -3.5, "y": 1.0}, "path": [[-3.5, 1.0]]}
        reported = await call.answer()
        assert room.harness.module.state_json == ""
        left = _measured(call, "from_goal_m")
        assert reported.startswith(f"Arrived {left:.2f} m from (-3.5, 1); now at")
        await room.until(room.is_still, timeout_s=1.0)
        assert left == pytest.approx(math.dist(_at(room)[:2], (-3.5, 1.0)), abs=0.05)
        assert _at(room)[:2] == pytest.approx((-3.5, 1.0), abs=0.15)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_go_to_goes_around_a_table() -> None:
    async with room_with(Drive, people=[], start_x=-2.6, start_y=0.9, start_yaw_deg=90.0) as room:
        call = await room.harness.call("go_to", x=-0.6, y=3.3)
        clearances = []
        while not any(event.type == "close" for event in call.events):
            await asyncio.sleep(0.1)
            clearances.append(room.clearance())
        await call.result()
        assert _at(room)[:2] == pytest.approx((-0.6, 3.3), abs=0.15)
        assert min(clearances) > 0.03


def _fails(call: HarnessCall, text: str) -> None:
    assert call.events[-1].outcome is Outcome.FAILED
    assert text in call.events[-1].text
    assert "standing at x " in call.events[-1].text


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_move_says_where_it_was_blocked() -> None:
    async with room_with(Drive, people=[], start_x=3.0, start_y=-1.0, start_yaw_deg=0.0) as room:
        call = await room.harness.call("move", distance_m=3.0)
        await call.closed()
        _fails(call, "blocked after 0.95 of 3 m")
        assert room.clearance() > 0.1
        assert room.is_still()


@pytest.mark.virtual_time
@pytest.mark.slow
async def test_go_to_where_no_way_leads() -> None:
    async with room_with(Drive, people=[], start_x=3.0, start_y=-1.0, start_yaw_deg=0.0) as room:
        call = await room.harness.call("go_to", x=6.0, y=-1.0)
        await call.closed(timeout_s=60.0)
        _fails(call, "can't get nearer than")
        await room.until(room.is_still, timeout_s=1.0)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_go_to_has_a_bound() -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("go_to", x=2.0, y=-1.0, timeout_s=2.0)
        await call.closed()
        _fails(call, "not there within 2 s")


@pytest.mark.virtual_time
@pytest.mark.parametrize("goal", [(1.7e308, 1.7e308), (0.0, -1e5 - 1)])
async def test_no_point_is_so_far_away_that_no_arithmetic_holds(goal: tuple[float, float]) -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call("go_to", x=goal[0], y=goal[1])
        assert call.events[-1].outcome is Outcome.REJECTED
        assert "100000" in call.events[-1].text


@pytest.mark.virtual_time
async def test_a_motion_without_odometry_says_what_is_known() -> None:
    async with ModuleHarness(Drive, unwired=("scan",)) as harness:
        call = await harness.call("move", distance_m=1.0)
        text = (await call.closed()).text
        assert text == "no odometry has ever come on /odom#nav_msgs.Odometry: it is not known where the robot is"
        harness.feed("odom", PoseStamped(pose=Pose(position=Point(x=0.5), orientation=Quaternion(w=1.0))))
        await asyncio.sleep(1.0)
        call = await harness.call("move", distance_m=1.0)
        text = (await call.closed()).text
        assert text == "odometry has been silent for 0.5 s; last standing at x 0.50, y 0.00, heading 0 deg"
        assert all(twist == Twist() for twist in harness.sent("cmd_vel"))


@pytest.mark.virtual_time
async def test_a_motion_whose_odometry_can_not_be_used_says_why() -> None:
    async with ModuleHarness(Drive, unwired=("scan",)) as harness:

        async def send() -> None:
            while True:
                harness.feed("odom", odometry(x=math.nan))
                await asyncio.sleep(0.1)

        sending = asyncio.ensure_future(send())
        text = (await (await harness.call("move", distance_m=1.0)).closed()).text
        assert text == "odometry comes, but its position is not a number: it is not known where the robot is"
        sending.cancel()
        text = (await (await harness.call("move", distance_m=1.0)).closed()).text
        assert text.startswith("no odometry has ever come on ")
        harness.feed("odom", odometry(x=0.5))
        sending = asyncio.ensure_future(send())
        text = (await (await harness.call("move", distance_m=1.0)).closed()).text
        assert text.startswith("odometry comes, but its position is not a number; last standing at x 0.50")
        sending.cancel()


@pytest.mark.virtual_time
async def test_silent_odometry_ends_a_motion() -> None:
    async with ModuleHarness(Drive, unwired=("scan",)) as harness:
        call = await harness.call("move", distance_m=1.0)
        harness.feed("odom", odometry(x=0.5))
        await call.closed()
        assert "odometry has been silent for 0.5 s; last standing at x 0.50" in call.events[-1].text
        assert harness.sent("cmd_vel")[0].linear.x > 0
        assert harness.sent("cmd_vel")[-1] == Twist()


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize(("skill", "arguments"), [("move", {"distance_m": 5.0}), ("go_to", {"x": 2.0, "y": -1.0})])
async def test_stop(skill: str, arguments: dict[str, Any]) -> None:
    async with room_with(Drive, **EMPTY) as room:
        call = await room.harness.call(skill, **arguments)
        await asyncio.sleep(2.0)
        assert not room.is_still()
        stop = await room.harness.call("stop")
        assert "Stopped " in await stop.answer()
        closed = await call.closed()
        assert (closed.outcome, closed.text) == (Outcome.CANCELLED, "stop was called (by 'test')")
        await room.until(room.is_still, timeout_s=1.0)


@pytest.mark.virtual_time
async def test_stop_commands_zero_whoever_drives() -> None:
    async with ModuleHarness(Drive) as harness:
        stop = await harness.call("stop")
        assert await stop.answer() == "Standing still"
        assert set(map(repr, harness.sent("cmd_vel"))) == {repr(Twist())}


@pytest.mark.virtual_time
async def test_arguments_have_bounds() -> None:
    async with ModuleHarness(Drive) as harness:
        call = await harness.call("move", distance_m=1000.0)
        with pytest.raises(SkillError, match="distance_m: it must be at most 20"):
            await call.answer()


@pytest.mark.virtual_time
async def test_odometry_that_waited_while_the_process_was_held_up_is_no_silence() -> None:
    async with ModuleHarness(Drive, unwired=("scan",)) as harness:
        call = await harness.call("move", distance_m=1.0)
        harness.feed("odom", odometry())
        await asyncio.sleep(0.52)
        harness.feed("odom", odometry(x=0.3))
        await call.closed()
        assert "last standing at x 0.30" in call.events[-1].text


@pytest.mark.virtual_time
async def test_time_in_which_the_process_was_held_up_makes_no_robot_stuck() -> None:
    """A loop that does not run is a clock that jumps."""

    async def closed_after(held_up_s: float) -> float:
        async with ModuleHarness(Drive, {"blocked_after_s": 2.0}) as harness:
            call = await harness.call("turn", angle_deg=60.0)
            began = clock.monotonic()
            while not (call.events and call.events[-1].type == "close"):
                if held_up_s and clock.monotonic() - began > 1.0:
                    hold_up(held_up_s)
                    began, held_up_s = began + held_up_s, 0.0
                harness.feed("odom", odometry())
                await asyncio.sleep(0.05)
            assert "blocked after 0.0 of 60 deg" in call.events[-1].text
            return clock.monotonic() - began

    assert await closed_after(0.0) == pytest.approx(2.0, abs=0.2)
    assert await closed_after(5.0) == pytest.approx(1.6, abs=0.3)


async def _turn_amid_junk(harness: ModuleHarness) -> None:
    """A robot that turns, and somebody who says of each of its poses at once that it is elsewhere than anywhere."""
    while True:
        harness.feed("odom", odometry(yaw=clock.monotonic()))
        for _ in range(3):
            harness.feed("odom", odometry(x=math.nan))
        await asyncio.sleep(0.05)


@pytest.mark.virtual_time
async def test_odometry_that_no_robot_has_hides_none_that_is_sound() -> None:
    async with ModuleHarness(Drive) as harness:
        harness.module.spawn(_turn_amid_junk(harness), name="turn")
        call = await harness.call("turn", angle_deg=60.0)
        await call.closed()
        assert call.events[-1].outcome is Outcome.COMPLETED, call.events[-1].text


async def _slip(harness: ModuleHarness) -> None:
    """A robot that slips from side to side, whatever is commanded."""
    while True:
        harness.feed("odom", odometry(y=0.5 * math.sin(clock.monotonic())))
        await asyncio.sleep(0.05)


@pytest.mark.virtual_time
async def test_a_way_on_which_the_robot_moves_and_gets_no_nearer_ends() -> None:
    async with ModuleHarness(Drive, {"no_nearer_after_s": 8.0}) as harness:
        harness.module.spawn(_slip(harness), name="slip")
        began = clock.monotonic()
        call = await harness.call("go_to", x=4.0, y=0.0)
        await call.closed()
        _fails(call, "can't get nearer than")
        assert 8.0 < clock.monotonic() - began < 8.0 + math.tau + 1.0
        assert _sidesteps(harness) == [], "it was not blocked"


def _sidesteps(harness: ModuleHarness) -> list[tuple[float, float]]:
    """The side to which the robot was commanded (left is positive), and for how many seconds, again and again."""
    steps: list[tuple[float, float]] = []
    aside = False
    for twist in harness.sent("cmd_vel"):
        if twist.linear.x == 0.0 and abs(twist.linear.y) == 0.3:
            side, lasted = steps.pop() if aside else (twist.linear.y, 0.0)
            steps.append((side, lasted + 0.05))
        aside = twist.linear.x == 0.0 and abs(twist.linear.y) == 0.3
    return steps


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("near", "sides"),
    [(None, [-0.3, 0.3, -0.3]), (math.pi / 2, [-0.3] * 3), (-math.pi / 2, [0.3] * 3)],
    ids=["nothing is seen", "something at the left", "something at the right"],
)
async def test_who_is_blocked_goes_aside_to_where_there_is_room_and_gives_up_in_the_end(
    near: float | None, sides: list[float]
) -> None:
    async def look(harness: ModuleHarness) -> None:
        while near is not None:
            ranges = [0.6 if abs(wrapped(math.radians(each) - near)) < 0.1 else math.inf for each in range(360)]
            scan = LaserScan(angle_increment=math.radians(1), range_min=0.05, range_max=12.0, ranges=ranges)
            harness.feed("scan", scan)
            await asyncio.sleep(0.1)

    async with ModuleHarness(Drive, {"blocked_after_s": 1.0}) as harness:
        harness.module.spawn(_stand(harness), name="stand")
        harness.module.spawn(look(harness), name="look")
        began = clock.monotonic()
        call = await harness.call("go_to", x=3.0, y=0.0)
        await call.closed()
        _fails(call, "can't get nearer than 3.00 m")
        steps = _sidesteps(harness)
        assert [side for side, _ in steps] == sides
        assert [lasted for _, lasted in steps] == pytest.approx([0.4 / 0.3] * 3, abs=0.1)
        assert clock.monotonic() - began == pytest.approx(4 * 1.0 + 3 * 0.4 / 0.3, abs=0.6)


@pytest.mark.virtual_time
async def test_no_command_is_faster_than_the_robot_may_go() -> None:
    """Neither while it goes aside nor on the way back to a line from which it was pushed."""
    async with ModuleHarness(Drive, {"max_speed": 0.1, "blocked_after_s": 1.0, "sidesteps": 1}) as harness:
        harness.module.spawn(_stand(harness), name="stand")
        call = await harness.call("go_to", x=3.0, y=0.0)
        await call.closed()
        aside = [twist.linear.y for twist in harness.sent("cmd_vel") if twist.linear.y]
        assert len(aside) * 0.05 * 0.1 == pytest.approx(0.4, abs=0.02), "it goes as far aside as it is to"
    async with ModuleHarness(Drive, {"max_speed": 0.1}) as pushed:
        await pushed.call("move", distance_m=1.0)
        for y in (0.0, -2.0):
            pushed.feed("odom", odometry(y=y))
            await asyncio.sleep(0.1)
        assert pushed.sent("cmd_vel")[-1].linear.y > 0.05
        for command in harness.sent("cmd_vel") + pushed.sent("cmd_vel"):
            assert math.hypot(command.linear.x, command.linear.y) <= 0.1 + 1e-9


@pytest.mark.virtual_time
async def test_who_may_not_go_aside_is_blocked_at_once() -> None:
    async with ModuleHarness(Drive, {"blocked_after_s": 1.0, "sidesteps": 0}) as harness:
        harness.module.spawn(_stand(harness), name="stand")
        call = await harness.call("go_to", x=3.0, y=0.0)
        began = clock.monotonic()
        await call.closed()
        _fails(call, "can't get nearer than 3.00 m")
        assert clock.monotonic() - began == pytest.approx(1.0, abs=0.2)
        assert _sidesteps(harness) == []


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("goal", "faced_first"), [((-2.0, 0.5), True), ((0.0, -2.0), True), ((2.0, 0.4), False), ((0.2, 0.4), False)]
)
async def test_what_is_aside_is_faced_before_it_is_driven_to_unless_it_is_near(
    goal: tuple[float, float], faced_first: bool
) -> None:
    async with ModuleHarness(Drive) as harness:
        harness.module.spawn(_stand(harness), name="stand")
        await harness.call("go_to", x=goal[0], y=goal[1])
        await asyncio.sleep(0.5)
        command = harness.sent("cmd_vel")[-1]
        assert (command.linear == Vector3()) == faced_first
        assert command.angular.z * goal[1] > 0.0
        if not faced_first:
            wanted = math.atan2(goal[1], goal[0])
            assert math.atan2(command.linear.y, command.linear.x) == pytest.approx(wanted)
            assert math.hypot(command.linear.x, command.linear.y) == pytest.approx(0.6)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_only_the_newest_calls_can_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.skills.drive._REMEMBERED", 2)
    async with room_with(Drive, **EMPTY) as room:
        calls = [await room.harness.call("turn", angle_deg=3.0) for _ in range(1)]
        for _ in range(2):
            await calls[-1].result()
            calls.append(await room.harness.call("turn", angle_deg=3.0))
        await calls[-1].result()
        newest = await room.harness.call("go_back", arguments={"angle_deg": 3.0}, call_id=calls[-1].id)
        assert (await newest.result())["from_goal_m"] == pytest.approx(0.0, abs=0.02)
        oldest = await room.harness.call("go_back", arguments={"angle_deg": 3.0}, call_id=calls[0].id)
        with pytest.raises(SkillError, match="began is not known"):
            await oldest.result()
