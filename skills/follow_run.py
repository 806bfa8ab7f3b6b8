"""One call of ``follow_person``: find, follow, lose, search, find again."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from dimos_streams import clock
from dimos_streams.common.readable.listed import listed
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call
from dimos_streams.skills.follow_record import FollowRecord
from dimos_streams.skills.follow_report import FollowReport
from dimos_streams.skills.moving.cadence import Cadence
from dimos_streams.skills.moving.obedience import DisobedienceError, Obedience
from dimos_streams.skills.moving.planar import STOP, pose_of, twist
from dimos_streams.skills.moving.pursuit import Gains, PursuitLimits, approach, face
from dimos_streams.skills.moving.steering import Detour, surroundings_of
from dimos_streams.skills.seeing.frames import DetectionFrame, fresh_frames
from dimos_streams.skills.seeing.sighting import Lens
from dimos_streams.skills.seeing.watch import PersonWatch

if TYPE_CHECKING:
    from dimos_streams.messages.geometry_msgs import Twist
    from dimos_streams.messages.nav_msgs import Odometry
    from dimos_streams.messages.sensor_msgs import CameraInfo, LaserScan
    from dimos_streams.messages.vision_msgs import Detection2DArray
    from dimos_streams.operator.holding import HoldInput
    from dimos_streams.skills.follow_person import FollowPersonConfig
    from dimos_streams.skills.moving.pose_history import PoseHistory
    from dimos_streams.streams import In, Out

TICK_S = 0.15
"""The longest time between commands, which are repeated also where detections come more slowly."""
PROGRESS_S = 0.5
LOOK_AHEAD = 0.9
ODOMETRY_S = 0.5
"""The most seconds for which one message of odometry can speak against the robot."""

Command = tuple[complex, float]
"""Velocity in base_link, m/s, and turn, rad/s."""
STILL: Command = (0j, 0.0)


class Follower(Protocol):
    """The protocol of what following needs of the module that it belongs to."""

    @property
    def detections(self) -> In[Detection2DArray]: ...
    @property
    def odom(self) -> In[Odometry]: ...
    @property
    def scan(self) -> In[LaserScan]: ...
    @property
    def camera_info(self) -> In[CameraInfo]: ...
    @property
    def holds(self) -> HoldInput: ...
    @property
    def cmd_vel(self) -> Out[Twist]: ...
    @property
    def poses(self) -> PoseHistory: ...


class Following:
    """One call. Its ``run`` may be used once; whoever runs it stops the robot afterwards."""

    def __init__(
        self, module: Follower, call: Call, description: str, settings: Callable[[], FollowPersonConfig]
    ) -> None:
        """``settings`` returns those for following as they are now: most of them are live."""
        self._module, self._call, self._description, self._settings = module, call, description, settings
        self._detour = Detour()
        self._obedience = Obedience()
        self._odometry: Odometry | None = None
        self._began = self._odometry_at = clock.monotonic()
        self._progress = Cadence(PROGRESS_S, self._began)
        self._watch = PersonWatch(description, module.poses, self._began)
        self._record = FollowRecord()
        self._frozen = False
        self._ticked_at = self._began
        self._search_side = 1.0

    @property
    def _config(self) -> FollowPersonConfig:
        return self._settings()

    @property
    def _gains(self) -> Gains:
        return Gains(self._config.distance_gain, self._config.bearing_gain, self._config.motion_gain)

    @property
    def _limits(self) -> PursuitLimits:
        return PursuitLimits(self._config.max_speed, self._config.max_turn)

    async def run(self, timeout_s: float) -> FollowReport:
        """Follow until the time is over. Raises ``SkillError`` if nobody is found or they are lost for good, and
        ``DisobedienceError`` if the robot does the opposite of what it is told."""
        async with aclosing(fresh_frames(self._module.detections, TICK_S)) as frames:
            async for frame in frames:
                now = clock.monotonic()
                if self._module.holds.held:
                    self._pass_over(now - self._ticked_at)
                self._ticked_at = now
                if now >= self._began + timeout_s:
                    break
                if frame is not None:
                    self._look(frame, now)
                self._check_obedience(now)
                command = await self._decide(now)
                self._obedience.command(*command)
                self._module.cmd_vel.publish(twist(*command))
                self._report_progress(now, command)
        if self._record.found_at is None:
            raise self._nobody_found()
        return self._record.report(self._description, clock.monotonic())

    def _pass_over(self, held_s: float) -> None:
        """Leave time in which the robot was held still out of the count: a robot that can't turn can't search."""
        self._began += held_s
        self._watch.pass_over(held_s)
        self._record.pass_over(held_s)

    def _check_obedience(self, now: float) -> None:
        """Raise ``DisobedienceError`` if the robot has moved against its commands for too long and nobody held it."""
        if self._module.holds.held:
            self._obedience = Obedience()
        odometry = self._module.odom.latest
        if odometry is None or odometry is self._odometry:
            return
        elapsed_s = min(now - self._odometry_at, ODOMETRY_S)
        self._odometry, self._odometry_at = odometry, now
        limits = self._limits
        why = self._obedience.contradiction(pose_of(odometry), elapsed_s, limits.speed, limits.turn)
        if why:
            raise DisobedienceError(self._ended_text(why))

    def followed_s(self) -> float:
        """Seconds since the person was found, but for those in which the robot was held; 0 before that."""
        return self._record.followed_s(clock.monotonic())

    def _look(self, frame: DetectionFrame, now: float) -> None:
        if self._watch.see(frame, now) and (distance := self._distance()) is not None:
            self._record.measure(distance)

    async def _decide(self, now: float) -> Command:
        if self._watch.blind_s(now) > self._config.frozen_after_s:
            return await self._wait_for_detections(now)
        if self._frozen:
            await self._end_freeze(now)
        if self._watch.sighting is None:
            return self._search_first(now)
        if self._watch.awaited_s(now) > self._config.lost_after_s:
            return await self._search_again(now)
        await self._report_found(now)
        return self._follow(now)

    async def _wait_for_detections(self, now: float) -> Command:
        """Blind, whether by the camera or by the detector: stand, say so, and end if it lasts."""
        blind_s, found = self._watch.blind_s(now), self._record.found_at is not None
        if blind_s > (self._config.give_up_after_s if found else self._config.first_look_s):
            raise SkillError(self._ended_text(f"there were no new detections for {blind_s:.0f} s"))
        if found and not self._frozen:
            self._module.cmd_vel.publish(STOP)
            await self._update(f"No new detections for {blind_s:.1f} s: standing still", "frozen")
        self._frozen = True
        return STILL

    async def _end_freeze(self, now: float) -> None:
        self._frozen = False
        if self._record.lost_at is None:
            self._watch.grant_time(now)
        if self._record.found_at is not None:
            await self._update("There are new detections again", "unfrozen")

    def _search_first(self, now: float) -> Command:
        """Look ahead, then turn around once, while nobody has matched yet."""
        turning_s = now - self._began - self._config.first_look_s
        if turning_s > self._config.search_s:
            raise self._nobody_found()
        return (0j, self._config.search_turn) if turning_s > 0.0 else STILL

    async def _search_again(self, now: float) -> Command:
        """Stand, face where the person was last seen, then turn on to that side; end if it lasts."""
        unseen_s, config, record = self._watch.unseen_s(now), self._config, self._record
        if self._watch.awaited_s(now) > config.give_up_after_s:
            raise SkillError(self._ended_text(f"lost them, not seen for {unseen_s:.0f} s"))
        if record.lost_at is None:
            record.lose(now)
            self._watch.let_go()
            self._search_side = math.copysign(1.0, self._last_bearing(ahead_s=2.0))
            self._module.cmd_vel.publish(STOP)
            await self._update(f"Lost {self._description}: not seen for {unseen_s:.1f} s. Looking around", "lost")
        if self._knows_place() and record.lost_s(now) < config.look_back_s:
            return 0j, face(self._last_bearing(), self._gains, self._limits)
        return 0j, self._search_side * config.search_turn

    async def _report_found(self, now: float) -> None:
        """Say that the person was found, the first time or again."""
        is_first, is_lost = self._record.found_at is None, self._record.lost_at is not None
        self._record.find(now)
        if is_first:
            await self._update(f"Following {self._description}", "found")
        elif is_lost:
            await self._update(f"Found {self._description} again", "found_again")

    def _follow(self, now: float) -> Command:
        sighting, target = self._watch.sighting, self._watch.target
        assert sighting is not None
        if sighting.point is None or target is None:
            return 0j, face(self._last_bearing(), self._gains, self._limits)
        pose, distance = self._module.poses.latest(), self._config.distance_m
        velocity, turn = approach(target, self._watch.target_time(now), pose, distance, self._gains, self._limits)
        # A person who is out of sight is followed more and more slowly.
        certainty = 1.0 - self._watch.unseen_s(now) / self._config.lost_after_s
        return self._around_obstacles(velocity * max(0.0, min(1.0, 1.3 * certainty))), turn

    def _around_obstacles(self, velocity: complex) -> complex:
        speed, wanted = cmath.polar(velocity)
        if speed < 0.05:
            return velocity
        around = surroundings_of(self._module.scan, self._config.half_width)
        return cmath.rect(speed, self._detour.direction(around, wanted, LOOK_AHEAD))

    def _knows_place(self) -> bool:
        """Return whether it is known where the person was, wherever the robot looks by now."""
        sighting = self._watch.sighting
        return self._module.odom.wired and sighting is not None and sighting.point is not None

    def _last_bearing(self, ahead_s: float = 0.0) -> float:
        """The direction in which the person was last seen, or would be ``ahead_s`` later: radians to the left."""
        sighting, target = self._watch.sighting, self._watch.target
        assert sighting is not None
        if sighting.point is None or target is None:
            return sighting.bearing(Lens.of(self._module.camera_info.latest))
        return cmath.phase(self._module.poses.latest().to_base(target.point + target.velocity * ahead_s))

    def _distance(self) -> float | None:
        sighting = self._watch.sighting
        return None if sighting is None or sighting.point is None else abs(sighting.point)

    async def _update(self, text: str, event: str) -> None:
        sighting = self._watch.sighting
        assert sighting is not None
        await self._call.update(text, event=event, label=sighting.label, track=sighting.id, **self._measures())

    def _report_progress(self, now: float, command: Command) -> None:
        if not self._progress.is_due(now):
            return
        in_sight, sighting, measures = self._in_sight(now), self._watch.sighting, self._measures()
        doing = "following" if in_sight else "looking for"
        text = "waiting for new detections" if self._frozen else f"{doing} {self._description}"
        speed = 0.0 if self._module.holds.held else round(abs(command[0]), 2)
        track = sighting.id if in_sight and sighting is not None else None
        if self._frozen or not in_sight:  # where they were is not where they are
            measures = dict.fromkeys(measures)
        self._call.progress(self._module.holds.said(text), speed=speed, track=track, **measures)

    def _in_sight(self, now: float) -> bool:
        """Return whether somebody was found, is not lost, and was seen lately, also while the robot is held."""
        is_found = self._record.found_at is not None and self._record.lost_at is None
        return is_found and self._watch.unseen_s(now) <= self._config.lost_after_s

    def _measures(self) -> dict[str, float | None]:
        if self._watch.sighting is None:
            return {"distance_m": None, "bearing_deg": None}
        distance = self._distance()
        return {
            "distance_m": None if distance is None else round(distance, 2),
            "bearing_deg": round(math.degrees(self._last_bearing()), 1),
        }

    def _nobody_found(self) -> SkillError:
        seen = f"only {listed(sorted(set(self._watch.others)))}" if self._watch.others else "nobody at all"
        return SkillError(f"Nobody who matches {self._description!r} was found, {seen} in sight")

    def _ended_text(self, why: str) -> str:
        followed = "" if self._record.found_at is None else f" after {self.followed_s():.0f} s"
        return f"Stopped following {self._description}{followed}: {why}"
