"""Skills on robots whose odometry contradicts what they are told, and on sound ones that are hindered."""

from __future__ import annotations

import asyncio
import cmath
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.module import Module
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.moving.obedience import Obedience
from dimos_streams.skills.moving.planar import Pose
from dimos_streams.skills.patrol import Patrol
from dimos_streams.testing import HarnessCall, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import hold_up
from tests.skills.detections import Seen, frame, odometry

STEP_S = 0.05
VIEW_RAD = 0.6
"""Half of what a camera sees."""
Push = Callable[[float], tuple[complex, float]]
"""The velocity in the still frame, and the turn, that somebody gives to a robot at a time since it began."""


@dataclass(frozen=True)
class Robot:
    """A base that does as it is told, and how its odometry and its motors may be wrong."""

    ahead: float = 1.0
    """What a metre ahead is in its odometry."""
    left: float = 1.0
    """What a radian to the left is in its odometry."""
    push: Push = lambda _: (0j, 0.0)
    noise: float = 0.0
    person: Callable[[float], complex] | None = None
    """Where somebody is at a time since it began, as the odometry has it."""

    async def run(self, harness: ModuleHarness) -> None:
        position, yaw, began, count = 0j, 0.0, clock.monotonic(), 0
        while True:
            count += 1
            shaken = self.noise * cmath.rect(1.0, 2.4 * count)
            harness.feed("odom", odometry((position + shaken).real, (position + shaken).imag, yaw + shaken.real))
            if self.person is not None:
                seen = Pose(position, yaw).to_base(self.person(clock.monotonic() - began))
                in_view = abs(cmath.phase(seen)) < VIEW_RAD
                harness.feed("detections", frame(*[Seen(at=(seen.real, seen.imag))] if in_view else []))
            await asyncio.sleep(STEP_S)
            velocity, turn = self.push(clock.monotonic() - began)
            for command in harness.sent("cmd_vel")[-1:]:
                told = complex(command.linear.x, command.linear.y)
                velocity += self.ahead * told * cmath.rect(1.0, yaw)
                turn += self.left * command.angular.z
            position += velocity * STEP_S
            yaw += turn * STEP_S


async def _closed(
    robot: Robot,
    skill: str,
    *,
    module: type[Module] = Drive,
    config: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> tuple[HarnessCall, float]:
    """A call on a robot, after its end, and the seconds that it took."""
    async with ModuleHarness(module, config) as harness:
        harness.module.spawn(robot.run(harness), name="robot")
        began = clock.monotonic()
        call = await harness.call(skill, **arguments)
        await call.closed(timeout_s=60.0)
        return call, clock.monotonic() - began


TURNS = "the robot turns against its commands: is yaw counter-clockwise positive, and angular.z too? Or does somebody"
MOVES = (
    "the robot moves against its commands: are x of its odometry and linear.x positive ahead? Or does somebody else"
)
UNITS = "where it was told at most 0.6 m/s: are its units metres?"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("robot", "skill", "arguments", "why"),
    [
        (Robot(left=-1.0), "turn", {"angle_deg": 45.0}, TURNS),
        (Robot(left=-1.0), "turn", {"angle_deg": -5.0}, TURNS),
        (Robot(left=-1.0), "go_to", {"x": 0.5, "y": 2.0}, TURNS),
        (Robot(left=-1.0, noise=0.01), "turn", {"angle_deg": 45.0}, TURNS),
        (Robot(ahead=-1.0), "move", {"distance_m": 0.5}, MOVES),
        (Robot(ahead=-1.0), "move", {"distance_m": -0.1}, MOVES),
        (Robot(ahead=-1.0, noise=0.01), "move", {"distance_m": 0.5}, MOVES),
        (Robot(ahead=-1.0), "go_to", {"x": 2.0, "y": 0.0}, MOVES),
        (Robot(ahead=1000.0), "move", {"distance_m": 0.3}, UNITS),
    ],
)
async def test_a_robot_that_contradicts_its_commands_is_stopped(
    robot: Robot, skill: str, arguments: dict[str, Any], why: str
) -> None:
    call, took_s = await _closed(robot, skill, **arguments)
    closed = call.events[-1]
    assert closed.outcome is Outcome.FAILED, closed.text
    assert why in closed.text
    assert "standing at x " in closed.text
    assert took_s < 3.5


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("robot", "why"),
    [
        (Robot(ahead=-1.0), MOVES),
        (Robot(left=-1.0), TURNS),
        (Robot(left=-1.0, person=lambda _: 2.0 + 0.5j), TURNS),
    ],
    ids=["moves", "turns", "turns to follow somebody"],
)
async def test_a_patrol_ends_with_the_first_contradiction(robot: Robot, why: str) -> None:
    config = {"waypoints": [(3.0, 0.0), (3.0, 2.0), (0.0, 2.0)]}
    call, took_s = await _closed(robot, "patrol", module=Patrol, config=config)
    closed = call.events[-1]
    assert closed.outcome is Outcome.FAILED, closed.text
    assert why in closed.text
    assert took_s < 12.0
    assert not [event for event in call.events if event.data.get("event") in ("missed", "back")]


def _shoved(at_s: float, lasts_s: float, velocity: complex, turn: float) -> Push:
    return lambda now: (velocity, turn) if at_s < now < at_s + lasts_s else (0j, 0.0)


def _walking(now: float) -> complex:
    """Somebody who walks to and fro, towards the robot too, and turns about at once."""
    return complex(3.0 + 1.5 * math.sin(now), 1.5 * math.sin(1.7 * now) + math.copysign(0.3, math.sin(2.3 * now)))


def _standing(_: float) -> complex:
    return 4.0 + 1.0j


def _behind(_: float) -> complex:
    return -3.0 + 0.5j


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("robot", "why"),
    [
        (Robot(left=-1.0, person=_standing), TURNS),
        (Robot(left=-1.0, noise=0.01, person=_standing), TURNS),
        (Robot(ahead=-1.0, person=_standing), MOVES),
        (Robot(ahead=-1.0, person=_walking), MOVES),
        (Robot(left=-1.0, person=_behind), TURNS),
        (Robot(ahead=100.0, person=lambda now: 300.0 + 100.0 * now), "told at most 1 m/s: are its units metres?"),
    ],
    ids=["turns", "turns and shakes", "moves", "moves after somebody", "turns to search", "units"],
)
async def test_a_robot_that_follows_against_its_commands_is_stopped(robot: Robot, why: str) -> None:
    call, took_s = await _closed(robot, "follow_person", module=FollowPerson, description="red", timeout_s=30.0)
    closed = call.events[-1]
    assert closed.outcome is Outcome.FAILED, closed.text
    assert closed.text.startswith("Stopped following red")
    assert why in closed.text
    assert took_s < 8.0


@pytest.mark.virtual_time
@pytest.mark.parametrize("walk", [_standing, _walking])
@pytest.mark.parametrize(
    "robot",
    [Robot(noise=0.01), Robot(push=_shoved(2.0, 0.8, -3 + 2j, -4.0)), Robot(push=lambda _: (-0.03 - 0.03j, -0.04))],
    ids=["shaken", "shoved", "dragged"],
)
async def test_a_sound_robot_follows_although_it_is_hindered(robot: Robot, walk: Callable[[float], complex]) -> None:
    call, _ = await _closed(
        replace(robot, person=walk), "follow_person", module=FollowPerson, description="red", timeout_s=30.0
    )
    assert call.events[-1].outcome is Outcome.COMPLETED, call.events[-1].text


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill", "arguments"),
    [("move", {"distance_m": 1.0}), ("turn", {"angle_deg": 90.0}), ("go_to", {"x": 0.5, "y": 1.5})],
)
@pytest.mark.parametrize(
    "robot",
    [
        Robot(noise=0.01),
        Robot(push=_shoved(0.3, 0.6, -3 + 2j, -4.0)),
        Robot(push=lambda _: (-0.03 - 0.03j, -0.04)),
    ],
    ids=["shaken", "shoved", "dragged"],
)
async def test_a_sound_robot_arrives_although_it_is_hindered(
    robot: Robot, skill: str, arguments: dict[str, Any]
) -> None:
    call, _ = await _closed(robot, skill, **arguments)
    assert call.events[-1].outcome is Outcome.COMPLETED, call.events[-1].text


@pytest.mark.virtual_time
async def test_whoever_moves_a_robot_that_is_held_does_not_end_its_motion() -> None:
    """It can't follow its commands then, and somebody carries it."""
    async with ModuleHarness(Drive) as harness:
        harness.feed("hold", Hold(source="desk", hold=True, valid_s=60.0))
        call = await harness.call("move", distance_m=1.0)
        for step in range(100):
            harness.feed("odom", odometry(x=-0.5 * STEP_S * step, yaw=0.5 * STEP_S * step))
            await asyncio.sleep(STEP_S)
        assert call.events[-1].type == "progress", call.events[-1].text


@pytest.mark.virtual_time
async def test_who_is_carried_while_the_process_is_held_up_does_not_disobey() -> None:
    """A loop that does not run is a clock that jumps."""
    async with ModuleHarness(FollowPerson) as harness:
        call = await harness.call("follow_person", description="red", timeout_s=20.0)
        for step in range(40):
            if step == 20:
                hold_up(5.0)
            harness.feed("odom", odometry(x=-2.0 * (step >= 20)))
            harness.feed("detections", frame(Seen(at=(4.0, 0.0))))
            await asyncio.sleep(STEP_S)
        assert call.events[-1].type != "close", call.events[-1].text


def test_a_correction_of_where_the_robot_is_contradicts_nothing() -> None:
    """Localization may find that it is somewhere else altogether; several messages may come at once."""
    obedience = Obedience()
    for step in range(200):
        jump = 50.0 * (step // 40)
        at = Pose(complex(step * 0.02 - jump, 0.0), -0.5 * (step // 40))
        assert obedience.contradiction(at, 0.06 if step % 3 == 0 else 0.001, 0.6, 1.2) == ""
        obedience.command(0.6 + 0j, math.radians(5))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill", "arguments", "end", "what"),
    [
        ("turn", {"angle_deg": 45.0}, (0.0, math.pi / 2), "blocked 45.0 deg past the 45 deg asked for; "),
        ("turn", {"angle_deg": -45.0}, (0.0, 0.5), "blocked after 28.6 deg the other way, of -45 deg; "),
        ("move", {"distance_m": -0.5}, (-0.9, 0.0), "blocked 0.40 m past the -0.5 m asked for; "),
        ("move", {"distance_m": 0.5}, (-0.3, 0.0), "blocked after 0.30 m the other way, of 0.5 m; "),
    ],
)
async def test_who_is_blocked_elsewhere_than_on_the_way_says_so(
    skill: str, arguments: dict[str, Any], end: tuple[float, float], what: str
) -> None:
    """A robot that was carried there, and stands now."""
    async with ModuleHarness(Drive) as harness:
        call = await harness.call(skill, **arguments)
        harness.feed("odom", odometry())
        while call.events[-1].type != "close":
            await asyncio.sleep(STEP_S)
            harness.feed("odom", odometry(x=end[0], yaw=end[1]))
        assert call.events[-1].text.startswith(what)


def test_however_long_a_robot_has_obeyed_it_is_stopped_as_soon_as_it_does_not() -> None:
    obedience, x = Obedience(), 0.0
    obedience.command(0.5 + 0j, 0.0)
    for speed, looks in ((0.5, 600), (-0.5, 30)):
        for _ in range(looks):
            x += speed * STEP_S
            why = obedience.contradiction(Pose(complex(x, 0.0)), STEP_S, 0.5, 1.0)
    assert "the robot moves against its commands" in why
