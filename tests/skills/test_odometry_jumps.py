"""Motions on a robot whose odometry jumps, because its driver was begun again or it is somewhere else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.moving.continuity import Continuity
from dimos_streams.skills.moving.planar import Pose
from dimos_streams.testing import HarnessCall, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.skills.detections import Seen, frame, odometry

STEP_S = 0.05
FAR = 100.0


async def _drive_to(harness: ModuleHarness, x: float, speed: float = 0.5, begin: float = 0.0) -> None:
    """Feed the odometry of a robot that drives straight ahead."""
    for step in range(round((x - begin) / (speed * STEP_S)) + 1):
        harness.feed("odom", odometry(x=begin + speed * STEP_S * step))
        await asyncio.sleep(STEP_S)


async def _ended(harness: ModuleHarness, call: HarnessCall, x: float) -> str:
    """Let the robot stand until a call has ended, and return its text."""
    while call.events[-1].type != "close":
        harness.feed("odom", odometry(x=x))
        await asyncio.sleep(STEP_S)
    assert call.events[-1].outcome is Outcome.FAILED
    return call.events[-1].text


@pytest.mark.virtual_time
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("skill", "arguments"), [("move", {"distance_m": 2.0}), ("turn", {"angle_deg": 90.0})])
async def test_what_goes_by_where_it_began_ends_at_a_jump(skill: str, arguments: dict[str, Any], held: bool) -> None:
    """Else it would drive all that way back, at the latest when the robot is let go."""
    async with ModuleHarness(Drive) as harness:
        call = await harness.call(skill, **arguments)
        await _drive_to(harness, 0.5)
        if held:
            harness.feed("hold", Hold(source="desk", hold=True, valid_s=60.0))
        harness.feed("odom", odometry(x=FAR))
        await asyncio.sleep(STEP_S)
        assert call.events[-1].type == "close", call.events[-1].text
        assert "odometry has jumped by 99.5 m where it was told at most 0.6 m/s" in call.events[-1].text
        assert harness.sent("cmd_vel")[-1] == Twist()


@pytest.mark.virtual_time
async def test_a_point_is_where_odometry_has_it() -> None:
    async with ModuleHarness(Drive) as harness:
        call = await harness.call("go_to", x=FAR + 1.0, y=0.0)
        await _drive_to(harness, 0.5)
        await _drive_to(harness, FAR + 1.0, begin=FAR)
        assert call.events[-1].outcome is Outcome.COMPLETED, call.events[-1].text


@pytest.mark.virtual_time
@pytest.mark.parametrize("during", [False, True])
async def test_nobody_goes_back_to_a_place_from_before_a_jump(during: bool) -> None:
    async with ModuleHarness(Drive) as harness:
        call = await harness.call("go_to", x=1.0, y=0.0)
        if during:
            await _drive_to(harness, 0.5)
            await _drive_to(harness, FAR, begin=FAR - 1.0)
            call.cancel("enough")
        else:
            await _drive_to(harness, 1.0)
            await asyncio.sleep(5.0)
            harness.feed("odom", odometry(x=FAR))
        await call.closed()
        back = await harness.call("go_back", arguments={"x": 1.0, "y": 0.0}, call_id=call.id)
        assert await _ended(harness, back, FAR) == f"where call {call.id!r} began is not known"


@pytest.mark.virtual_time
async def test_the_way_back_ends_at_a_jump() -> None:
    async with ModuleHarness(Drive) as harness:
        call = await harness.call("go_to", x=1.0, y=0.0)
        await _drive_to(harness, 1.0)
        await call.closed()
        back = await harness.call("go_back", arguments={"x": 1.0, "y": 0.0}, call_id=call.id)
        await _drive_to(harness, 0.9, begin=1.0, speed=-0.5)
        assert "odometry has jumped by 99.1 m" in await _ended(harness, back, FAR)


@pytest.mark.virtual_time
@pytest.mark.parametrize("looks", [1, 10])
@pytest.mark.parametrize(("skill", "arguments"), [("move", {"distance_m": 1.0}), ("turn", {"angle_deg": 90.0})])
async def test_the_way_back_of_a_robot_that_was_turned_since_ends_at_a_jump(
    skill: str, arguments: dict[str, Any], looks: int
) -> None:
    async with ModuleHarness(Drive) as harness:
        call = await harness.call(skill, **arguments)
        await _drive_to(harness, 0.5)
        call.cancel("enough")
        await call.closed()
        back = await harness.call("go_back", arguments=arguments, call_id=call.id)
        for _ in range(looks):
            harness.feed("odom", odometry(x=0.5, yaw=1.5))
            await asyncio.sleep(STEP_S)
        assert "odometry has jumped by 99.5 m" in await _ended(harness, back, FAR)


@pytest.mark.virtual_time
@pytest.mark.parametrize("late_s", [0.0, 0.08])
@pytest.mark.parametrize("to", [-FAR, FAR])
async def test_who_is_followed_is_not_sought_where_they_were_before_a_jump(to: float, late_s: float) -> None:
    """Else it would drive to where that point is, past who stands before it, until they count as lost."""
    async with ModuleHarness(FollowPerson) as harness:
        call = await harness.call("follow_person", description="person in a red shirt")
        for step in range(60):
            harness.feed("odom", odometry(x=to if step > 20 else 0.0))
            harness.feed("detections", frame(Seen(at=(1.2, 0.0)), utime=clock.utime() - round(late_s * 1e6)))
            await asyncio.sleep(STEP_S)
            velocity = harness.sent("cmd_vel")[-1]
            if step > 10:  # they are too near; it stands while what it sees was taken before the jump
                assert velocity.angular.z == pytest.approx(0.0, abs=0.01)
                assert velocity.linear.x < 0.0 or (velocity == Twist() and step in range(21, 25))
        assert [event.text for event in call.events if event.type == "update"] == ["Following person in a red shirt"]


def test_small_corrections_and_the_fastest_ways_are_no_jumps() -> None:
    continuity = Continuity()
    for x, now, jumps in (
        (0.0, 7.0, False),
        (0.9, 7.0, False),
        (4.5, 7.5, False),
        (10.0, 8.0, True),
        (20.0, 99.0, True),
    ):
        assert bool(continuity.break_of(Pose(complex(x)), now, longest_s=0.5, max_speed=0.6)) is jumps
