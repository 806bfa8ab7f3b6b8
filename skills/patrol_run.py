"""One call of ``patrol``: go the round, notice people, follow and report them, go on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from math import radians
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.common.readable.listed import listed
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call
from dimos_streams.skills.drive_run import Covered, Motion
from dimos_streams.skills.follow_run import Following
from dimos_streams.skills.moving.obedience import DisobedienceError
from dimos_streams.skills.moving.planar import STOP, Pose, pose_of
from dimos_streams.skills.moving.sensor_faults import odometry_fault
from dimos_streams.skills.patrol_report import Encounter, PatrolReport
from dimos_streams.skills.seeing.frames import DetectionFrame
from dimos_streams.skills.seeing.lookout import Candidate, Lookout, candidates
from dimos_streams.skills.seeing.sighting import Sighting, sightings_of

if TYPE_CHECKING:
    from dimos_streams.skills.patrol import Patrol, PatrolConfig

LOOK_S = 0.1
"""The longest time between looks at whether the robot is held, while a leg's time passes."""
MOST_ENCOUNTERS = 50
"""Maximum number of encounters in the result of a patrol, so that it fits into one event."""


class Patrolling:
    """One call. Its ``run`` may be used once; whoever runs it stops the robot afterwards."""

    def __init__(self, module: Patrol, call: Call, wanted: Sequence[str], follow_s: float) -> None:
        self._module, self._call = module, call
        self._wanted, self._follow_s = wanted, follow_s
        self._guard = _Guard(module, call, wanted)
        self._met = 0
        self._encounters: deque[Encounter] = deque(maxlen=MOST_ENCOUNTERS)
        self._reached = self._missed = 0

    @property
    def _config(self) -> PatrolConfig:
        """The settings as they are now: some of them are live."""
        return self._module.config

    async def run(self, rounds: int) -> PatrolReport:
        """Go that number of rounds. Raises ``SkillError`` after one in which no way-point could be reached, and
        ``DisobedienceError`` as soon as the robot does the opposite of what it is told."""
        home = (await self._first_pose()).position
        points = [complex(x, y) for x, y in self._config.waypoints]
        what = f"{len(points)} way-points, {rounds} times" if rounds > 1 else f"{len(points)} way-points"
        await self._call.update(f"On patrol: {what}, looking out for {listed(self._wanted, 'or')}", event="started")
        for number in range(rounds):
            before = self._reached
            for index, point in enumerate(points):
                self._module.show_way(point, [*points[index + 1 :], *[home] * self._config.return_home])
                await self._visit(point, f"way-point {index + 1} of {len(points)}, round {number + 1} of {rounds}")
            if self._reached == before:
                raise SkillError(f"no way-point can be reached; {self._report(number)}")
        home_m: float | None = None
        if self._config.return_home:
            self._module.show_way(home)
            await self._go(home, "where the patrol began")
            home_m = round(abs(self._module.poses.latest().position - home), 2)
        return self._report(rounds, home_m)

    async def _first_pose(self) -> Pose:
        """Return the robot's pose when the patrol begins."""
        timeout_s = self._config.drive.odom_timeout_s
        reader = self._module.odom.reader()
        try:
            async with asyncio.timeout(timeout_s):
                return pose_of(await reader.next())
        except TimeoutError:
            why = odometry_fault(self._module.odom, timeout_s)
            raise SkillError(f"{why}, so there is no way to patrol") from None
        finally:
            self._module.odom.release(reader)

    async def _visit(self, point: complex, name: str) -> None:
        """Go to a way-point and look around there, in spite of all whom it meets."""
        if not await self._go(point, name):
            self._missed += 1
            return
        self._reached += 1
        at = self._module.poses.latest().position
        text = f"At {name}, {abs(at - point):.2f} m from it"
        await self._call.update(text, event="waypoint", x=round(at.real, 2), y=round(at.imag, 2))
        angle = radians(self._config.look_around_deg)
        try:
            await self._in_spite_of_people(lambda motion: motion.turn(angle))
        except DisobedienceError:
            raise
        except (SkillError, TimeoutError) as error:
            await self._call.update(f"Can't look around at {name}: {self._reason(error)}", event="missed")

    async def _go(self, point: complex, name: str) -> bool:
        """Go to a point and return whether it was reached. Says so if not."""
        try:
            await self._in_spite_of_people(lambda motion: motion.go_to(point))
        except DisobedienceError:
            raise
        except (SkillError, TimeoutError) as error:
            text = f"Can't reach {name}: {self._reason(error)}. Going on"
            await self._call.update(text, event="missed", x=point.real, y=point.imag)
            return False
        return True

    def _reason(self, error: Exception) -> str:
        """Return why a motion was not made; an error without a text is the end of its time."""
        return str(error) or f"not done within {self._config.leg_timeout_s:g} s"

    async def _in_spite_of_people(self, move: Callable[[Motion], Coroutine[Any, Any, Covered]]) -> None:
        """Make a motion; if somebody appears, attend to them and begin it again.

        Raises ``SkillError``, or ``TimeoutError`` if one attempt takes too long.
        """
        met = True
        while met:
            motion = Motion(self._module, self._call, lambda: self._config.drive)
            try:
                noticed = await self._until_somebody_appears(move(motion))
            finally:
                motion.close()
                self._module.cmd_vel.publish(STOP)
            met = noticed is not None
            if noticed is not None:
                await self._attend(noticed)

    async def _until_somebody_appears(self, moving: Coroutine[Any, Any, Covered]) -> _Noticed | None:
        """Let a motion go on to its end, or until somebody is noticed. Raises ``TimeoutError`` after too long."""
        motion = asyncio.ensure_future(moving)
        notice = asyncio.ensure_future(self._guard.next())
        try:
            await self._wait_for_first(motion, notice)
            if motion.done() and isinstance(error := motion.exception(), DisobedienceError):
                raise error  # whoever shows at this moment is not to be followed
            if notice.done():
                return notice.result()
            motion.result()
            return None
        finally:
            await end_tasks_silently(motion, notice)

    async def _wait_for_first(self, *tasks: asyncio.Future[Any]) -> None:
        """Wait until one is done. Raises ``TimeoutError`` at the end of a leg's time, to which that in which it is
        held does not count."""
        looked_at = clock.monotonic()
        until = looked_at + self._config.leg_timeout_s
        while looked_at < until:
            bound_s = min(until - looked_at, LOOK_S)
            done, _ = await asyncio.wait(tasks, timeout=bound_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
            now = clock.monotonic()
            if self._module.holds.held:
                until += now - looked_at
            looked_at = now
        raise TimeoutError

    async def _attend(self, noticed: _Noticed) -> None:
        """Report somebody, follow them for a while, and report how that ended."""
        sighting, utime, place = noticed.sighting, noticed.utime, noticed.place
        x, y = (None, None) if place is None else (round(place.real, 2), round(place.imag, 2))
        where = "" if place is None else f" at ({x:.1f}, {y:.1f})"
        await self._call.update(f"Saw {sighting.label}{where}", event="seen", label=sighting.label, x=x, y=y)
        followed_s, ended = 0.0, "Only reported."
        if self._follow_s > 0.0:
            followed_s, ended = await self._follow(sighting.label)
        self._guard.leave_alone(sighting.label)
        self._met += 1
        self._encounters.append(
            Encounter(label=sighting.label, utime=utime, x=x, y=y, followed_s=followed_s, ended=ended)
        )
        await self._call.update(
            f"{ended} Back to the round.", event="back", label=sighting.label, followed_s=followed_s
        )

    async def _follow(self, label: str) -> tuple[float, str]:
        """Follow somebody for a while; return for how long, and how it ended."""
        following = Following(self._module, self._call, label, lambda: self._config.follow)
        try:
            report = await following.run(self._follow_s)
        except DisobedienceError:
            raise
        except SkillError as error:
            return round(following.followed_s(), 1), f"{error}."
        finally:
            self._module.cmd_vel.publish(STOP)
        return report.followed_s, str(report)

    def _report(self, rounds: int, home_m: float | None = None) -> PatrolReport:
        return PatrolReport(
            rounds=rounds,
            reached=self._reached,
            missed=self._missed,
            met=self._met,
            encounters=tuple(self._encounters),
            home_m=home_m,
        )


@dataclass(frozen=True, slots=True)
class _Noticed:
    """Somebody whom the guard has just seen."""

    sighting: Sighting
    utime: int
    """The time at which they were seen, by this machine's clock."""
    place: complex | None
    """Their place in the odom frame, or None if depth, or the robot's pose at that time, is unknown."""


class _Guard:
    """Notices people who fit, but for those who were met a short while ago."""

    def __init__(self, module: Patrol, call: Call, wanted: Sequence[str]) -> None:
        self._module, self._call, self._wanted = module, call, wanted
        self._lookout = Lookout(module, self._report_blindness)
        self._left_alone: dict[str, float] = {}
        """Labels of people, and the time until which they are left alone."""

    def leave_alone(self, label: str) -> None:
        """Take no notice for a while of somebody who has just been met."""
        self._left_alone[label] = clock.monotonic() + self._module.config.again_after_s

    async def next(self) -> _Noticed:
        """Return the next person who shows for enough frames in a row. Says so if frames stop coming."""
        found, frame = await self._lookout.next(self._find)
        poses, point = self._module.poses, found.sighting.point
        pose = poses.at(frame.stamp, frame.arrived)
        place = None if point is None or pose is None else pose.from_base(point)
        age_us = poses.age_us(frame.stamp, clock.monotonic()) or 0
        return _Noticed(found.sighting, clock.utime() - age_us, place)

    def _find(self, frame: DetectionFrame) -> list[Candidate]:
        now = clock.monotonic()
        seen = [each for each in sightings_of(frame.message) if now >= self._left_alone.get(each.label, 0.0)]
        return candidates(seen, self._wanted, self._module.config.confidence)

    async def _report_blindness(self, blind: bool) -> None:
        if blind:
            await self._call.update("There are no new detections. Going on with the round", event="frozen")
        else:
            await self._call.update("There are new detections again", event="unfrozen")
