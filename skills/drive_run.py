"""Motions of the base by odometry: what one call of ``drive`` does."""

from __future__ import annotations

import asyncio
import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call
from dimos_streams.skills.moving.cadence import Cadence
from dimos_streams.skills.moving.continuity import Continuity
from dimos_streams.skills.moving.headway import blocked_text
from dimos_streams.skills.moving.obedience import DisobedienceError, Obedience
from dimos_streams.skills.moving.planar import Pose, clamped, pose_of, shortened, turned, twist, wrapped
from dimos_streams.skills.moving.sensor_faults import odometry_fault, scan_fault
from dimos_streams.skills.moving.standstill import Standstill, least_motion
from dimos_streams.skills.moving.steering import Detour, surroundings_of

if TYPE_CHECKING:
    from dimos_streams.messages.geometry_msgs import Twist
    from dimos_streams.messages.nav_msgs import Odometry
    from dimos_streams.messages.sensor_msgs import LaserScan
    from dimos_streams.operator.holding import HoldInput
    from dimos_streams.skills.drive import DriveConfig
    from dimos_streams.streams import In, Out

SPEED_GAIN = 1.5
TURN_GAIN = 2.0
FACE_FIRST = 0.6
"""The bearing, in radians, from which a point is faced before it is driven to."""
SMALL = 0.2
"""The share of what was asked for that may be missing or too much, where the tolerance is more than that."""
LOOK_AHEAD = 0.7
NEARER_M = 0.1
SIDESTEP_SPEED = 0.3
PROGRESS_S = 0.5
_LATE_S = 0.05
"""The time, after the end of the wait, within which odometry that waited because this process was held up is read."""


@dataclass(frozen=True, slots=True)
class Covered:
    """The way that a motion covered, by odometry."""

    pose: Pose
    """The pose at its end."""
    amount: float
    """The metres ahead for a straight line, the radians to the left for a turn, the metres that were left for a way
    to a point."""


class Driver(Protocol):
    """The protocol of what a motion needs of the module that it belongs to."""

    @property
    def odom(self) -> In[Odometry]: ...
    @property
    def scan(self) -> In[LaserScan]: ...
    @property
    def holds(self) -> HoldInput: ...
    @property
    def cmd_vel(self) -> Out[Twist]: ...


class Motion:
    """The motions of one call, one after another. Whoever runs them stops the robot afterwards.

    Each raises ``SkillError``, which says where the robot stands, if odometry falls silent or something is in the
    way, and ``DisobedienceError`` if the robot does the opposite of what it is told. A motion that is measured from
    an earlier pose also fails if odometry jumps, even while the robot is held; a ``go_to`` goes on to where odometry
    then has its point.
    """

    def __init__(self, module: Driver, call: Call, settings: Callable[[], DriveConfig]) -> None:
        """``settings`` returns those for driving as they are now: most of them are live."""
        self._module, self._call, self._settings = module, call, settings
        self._reader = module.odom.reader()
        self._pose = Pose()
        self._began: Pose | None = None
        self._continuity = Continuity()
        self._has_jumped, self._needs_continuity = False, True
        self._detour = Detour()
        self._side = 1.0
        self._driven_s = 0.0
        """Seconds that it has driven. Between two messages of odometry at most ``odom_timeout_s`` count: whatever is
        longer means that this process, or the whole machine, was held up."""
        self._looked_at = clock.monotonic()
        self._standstill = Standstill()
        self._obedience = Obedience()
        self._progress = Cadence(PROGRESS_S, clock.monotonic())

    @property
    def _config(self) -> DriveConfig:
        return self._settings()

    @property
    def began(self) -> Pose | None:
        """The robot's first pose; None before the first odometry, and if that has jumped since."""
        return None if self._has_jumped else self._began

    def close(self) -> None:
        """Read no more odometry. Twice is fine."""
        self._module.odom.release(self._reader)

    async def straight(self, distance: float) -> Covered:
        """Go ahead, or back where it is negative, on a straight line of that length in metres, however short it
        is."""
        return await self._straight(distance, min(self._config.tolerance_m, abs(distance) * SMALL))

    async def turn(self, angle: float) -> Covered:
        """Turn on the spot by that angle in radians, however small it is; it may be more than a full turn."""
        return await self._turn(angle, min(self._tolerance, abs(angle) * SMALL))

    async def back_to(self, start: Pose) -> Covered:
        """Go straight back, or ahead, to the height of a pose; where the robot was turned or taken aside since, as to
        any point."""
        way = (await self.here()).to_base(start.position)
        if abs(way.imag) > self._config.arrived_m:
            return await self.go_to(start.position, needs_continuity=True)
        return await self._straight(way.real, self._config.tolerance_m)

    async def face(self, yaw: float) -> Covered:
        """Turn the short way to a heading."""
        here = await self.here()
        return await self._turn(wrapped(yaw - here.yaw), self._tolerance)

    async def here(self) -> Pose:
        """Return the robot's pose now."""
        return await self._next_pose()

    @property
    def _tolerance(self) -> float:
        return math.radians(self._config.tolerance_deg)

    async def _straight(self, distance: float, tolerance: float) -> Covered:
        self._needs_continuity = True
        start = await self._next_pose()
        while True:
            done = start.to_base(self._pose.position)
            remaining = distance - done.real
            if abs(remaining) <= tolerance:
                return Covered(self._pose, done.real)
            if self._is_stuck():
                raise SkillError(f"{blocked_text(done.real, distance, 'm', 2)}; {self._why_here()}")
            speed = clamped(SPEED_GAIN * remaining, self._config.max_speed)
            heading = wrapped(start.yaw - self._pose.yaw)
            # Back to the line as well as along it.
            self._command(complex(speed, -done.imag) * turned(heading), TURN_GAIN * heading)
            self._report_progress(f"{abs(remaining):.2f} m to go", remaining_m=round(abs(remaining), 2))
            await self._next_pose()

    async def _turn(self, angle: float, tolerance: float) -> Covered:
        self._needs_continuity = True
        last, done = await self._next_pose(), 0.0
        while abs(angle - done) > tolerance:
            to_go = abs(math.degrees(angle - done))
            if self._is_stuck():
                where = blocked_text(math.degrees(done), math.degrees(angle), "deg", 1)
                raise SkillError(f"{where}; {self.whereabouts()}")
            self._command(0j, TURN_GAIN * (angle - done))
            self._report_progress(f"{to_go:.0f} deg to turn", remaining_deg=round(to_go, 1))
            pose = await self._next_pose()
            done += wrapped(pose.yaw - last.yaw)
            last = pose
        return Covered(last, done)

    async def go_to(self, goal: complex, *, needs_continuity: bool = False) -> Covered:
        """Go to a point of the odom frame, around what a lidar sees, and aside when blocked. A point that was
        measured by odometry ``needs_continuity``: a jump of odometry ends the motion."""
        self._needs_continuity = needs_continuity
        sidesteps = self._config.sidesteps
        nearest, nearest_at = math.inf, self._driven_s
        await self._next_pose()
        while True:
            seen = self._pose.to_base(goal)
            if abs(seen) <= self._config.arrived_m:
                return Covered(self._pose, abs(seen))
            if abs(seen) < nearest - least_motion(NEARER_M, self._config.max_speed, self._config.no_nearer_after_s):
                nearest, nearest_at = abs(seen), self._driven_s
            self._head_for(seen)
            self._report_progress(f"{abs(seen):.2f} m to go", remaining_m=round(abs(seen), 2))
            await self._next_pose()
            stuck = self._is_stuck()
            if self._module.holds.held:
                nearest_at = self._driven_s
            if stuck and sidesteps > 0:
                sidesteps -= 1
                await self._sidestep()
            elif stuck or self._driven_s - nearest_at > self._config.no_nearer_after_s:
                raise SkillError(f"can't get nearer than {abs(seen):.2f} m; {self._why_here()}")

    def whereabouts(self) -> str:
        """Return the robot's pose in words."""
        at, heading = self._pose.position, math.degrees(self._pose.yaw)
        return f"standing at x {at.real:.2f}, y {at.imag:.2f}, heading {heading:.0f} deg"

    def _why_here(self) -> str:
        """Return what keeps the robot from driving, if that is known, and where it stands."""
        return "; ".join(filter(None, (scan_fault(self._module.scan), self.whereabouts())))

    def _head_for(self, seen: complex) -> None:
        """Face a point of base_link, then go there, in the nearest direction that is free."""
        bearing = cmath.phase(seen)
        if abs(bearing) > FACE_FIRST and abs(seen) > LOOK_AHEAD:
            self._command(0j, TURN_GAIN * bearing)
            return
        around = surroundings_of(self._module.scan, self._config.half_width)
        direction = self._detour.direction(around, bearing, min(LOOK_AHEAD, abs(seen)))
        speed = clamped(SPEED_GAIN * abs(seen), self._config.max_speed)
        # Near the point its direction changes fast and no longer matters.
        self._command(cmath.rect(speed, direction), TURN_GAIN * bearing * min(1.0, abs(seen)))

    async def _sidestep(self) -> None:
        """Go aside for a short while, to the freer side, or to the other one than the last time."""
        around = surroundings_of(self._module.scan, self._config.half_width)
        left, right = around.free_distance(math.pi / 2), around.free_distance(-math.pi / 2)
        self._side = -self._side if left == right else math.copysign(1.0, left - right)
        speed = min(SIDESTEP_SPEED, self._config.max_speed)
        until = clock.monotonic() + self._config.sidestep_m / speed
        while clock.monotonic() < until:
            self._command(complex(0.0, self._side * speed), 0.0)
            await self._next_pose()
        self._standstill.restart(self._driven_s)

    async def _next_pose(self) -> Pose:
        """The next odometry's pose."""
        timeout = self._config.odom_timeout_s
        try:
            pose = await self._within(timeout)
        except TimeoutError:
            try:
                pose = await self._within(_LATE_S)
            except TimeoutError:
                raise SkillError(self._silence(timeout)) from None
        self._pose = pose
        self._began = self._began or pose
        now = clock.monotonic()
        elapsed_s = min(now - self._looked_at, timeout)
        self._driven_s += elapsed_s
        self._looked_at = now
        self._check_continuity(now)
        self._check_obedience(elapsed_s)
        return pose

    def _check_continuity(self, now: float) -> None:
        """Raise ``SkillError`` if odometry has jumped and the motion goes by what was measured before."""
        timeout, max_speed = self._config.odom_timeout_s, self._config.max_speed
        why = self._continuity.break_of(self._pose, now, longest_s=timeout, max_speed=max_speed)
        self._has_jumped = self._has_jumped or bool(why)
        if why and self._needs_continuity:
            raise SkillError(f"{why} How far the robot has gone is not known; {self.whereabouts()}")

    def _check_obedience(self, elapsed_s: float) -> None:
        """Raise ``DisobedienceError`` if the robot has moved against its commands for too long and nobody held it."""
        if self._module.holds.held:
            self._obedience = Obedience()
        config = self._config
        why = self._obedience.contradiction(self._pose, elapsed_s, config.max_speed, config.max_turn)
        if why:
            raise DisobedienceError(f"{why}; {self.whereabouts()}")

    async def _within(self, seconds: float) -> Pose:
        """The next odometry's pose. Raises ``TimeoutError``."""
        # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with the message.
        async with asyncio.timeout(seconds):
            return pose_of(await self._reader.next())

    def _silence(self, timeout: float) -> str:
        odom = self._module.odom
        why = odometry_fault(odom, timeout)
        if odom.latest is None:
            return f"{why}: it is not known where the robot is"
        self._pose = pose_of(odom.latest)  # none may have come since the call began
        return f"{why}; last {self.whereabouts()}"

    def _is_stuck(self) -> bool:
        """Return whether the robot has stood still for too long although nobody holds it."""
        if self._module.holds.held:
            self._standstill.restart(self._driven_s)
        config = self._config
        return self._standstill.lasts_longer_than(
            config.blocked_after_s,
            self._pose,
            self._driven_s,
            max_speed=config.max_speed,
            max_turn=config.max_turn,
        )

    def _command(self, velocity: complex, turn: float) -> None:
        velocity, turn = shortened(velocity, self._config.max_speed), clamped(turn, self._config.max_turn)
        self._obedience.command(velocity, turn)
        self._module.cmd_vel.publish(twist(velocity, turn))

    def _report_progress(self, text: str, **data: float) -> None:
        if self._progress.is_due(clock.monotonic()):
            self._call.progress(self._module.holds.said(text), **data)
