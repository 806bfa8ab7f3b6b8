"""The module that drives the base by odometry: straight, turning, to a point."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dimos_streams import clock
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.listed import listed
from dimos_streams.errors import SkillError
from dimos_streams.live_settings import Live
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.module import Module
from dimos_streams.operator.holding import HoldInput
from dimos_streams.operator.messages.scene import scene_state
from dimos_streams.skill import Call, skill
from dimos_streams.skills.drive_run import Motion
from dimos_streams.skills.moving.continuity import Continuity
from dimos_streams.skills.moving.hull import HullConfig
from dimos_streams.skills.moving.planar import STOP, Pose, pose_of, wrapped
from dimos_streams.skills.moving.scene import way
from dimos_streams.skills.moving.speed_limits import check_against_gate
from dimos_streams.skills.moving.steering import SCAN_AGE_S
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.streams import In, Out

_REMEMBERED = 1000
"""The largest number of calls that can be taken back."""
_FAR_M = 100_000.0
Coordinate = Annotated[float, Field(ge=-_FAR_M, le=_FAR_M)]
"""A coordinate in metres. A point farther away is taken for a mistake: paths can't be computed there."""


class DriveConfig(HullConfig):
    """Settings for driving. Metres, seconds, radians."""

    max_speed: Annotated[float, Live] = Field(0.6, gt=0.0)
    """The greatest speed, in m/s."""
    max_turn: Annotated[float, Live] = Field(1.2, gt=0.0)
    """The greatest turning speed, in rad/s."""
    tolerance_m: Annotated[float, Live] = Field(0.05, gt=0.0)
    """The distance, in metres, from its goal at which a move is done; a fifth of the distance asked for, if that is
    less."""
    tolerance_deg: Annotated[float, Live] = Field(2.0, gt=0.0)
    """The angle, in degrees, from its goal at which a turn is done; a fifth of the angle asked for, if that is
    less."""
    blocked_after_s: Annotated[float, Live] = Field(3.0, gt=0.0)
    """The time, in seconds, without progress after which a motion counts as blocked."""
    arrived_m: Annotated[float, Live] = Field(0.1, gt=0.0)
    """The distance, in metres, from a point at which the robot has arrived."""
    no_nearer_after_s: Annotated[float, Live] = Field(12.0, gt=0.0)
    """The time, in seconds, without getting nearer to a point after which the robot gives up going there."""
    sidestep_m: Annotated[float, Live] = Field(0.4, ge=0.0)
    """The distance, in metres, to go aside when the way to a point is blocked."""
    sidesteps: Annotated[int, Live] = Field(3, ge=0)
    """Maximum number of sidesteps before the robot gives up."""
    odom_timeout_s: float = Field(0.5, gt=0.0)
    """The time, in seconds, without odometry after which a motion fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveReport:
    """The end of a motion, and what it did, as odometry measured it in the odom frame."""

    x: float
    y: float
    yaw_deg: float
    did: str
    moved_m: float | None = None
    """Metres ahead, for a move."""
    turned_deg: float | None = None
    """Degrees to the left, for a turn."""
    from_goal_m: float | None = None
    """Metres left to the point, for a go_to or a go_back."""

    def __str__(self) -> str:
        return f"{self.did}; now at x {self.x:.2f} m, y {self.y:.2f} m, heading {self.yaw_deg:.1f} deg"


class Drive(Module):
    """Moves the base and answers when it has arrived."""

    config: DriveConfig
    shared_outputs = frozenset({"cmd_vel"})
    odom: In[Odometry] = In(also=OdometryFromPoses, fault=pose_fault, fresh=True)
    scan: In[LaserScan] = In(required=False, fresh=True)
    hold: In[Hold] = In(required=False, external=True)
    cmd_vel: Out[Twist]

    @classmethod
    def longest_gaps(cls, config: DriveConfig) -> Mapping[str, float]:
        """See ``Module``."""
        return {"odom": config.odom_timeout_s, "scan": SCAN_AGE_S}

    async def start(self) -> None:
        """See ``Module``."""
        self._calls = OwnCalls()
        self.holds = HoldInput(self.hold, self.name)
        self._began = NewestEntries[str, Pose](_REMEMBERED)
        self._continuity = Continuity()
        self.odom.on_message(self._watch_for_jumps)

    def on_settings(self, changed: frozenset[str]) -> None:
        """See ``Module``: refuses more than the velocity gate lets pass."""
        check_against_gate(self, changed)

    @skill(resources={"base"}, tags={"motion"}, motion=True, undo="go_back")
    async def move(self, call: Call, distance_m: Annotated[float, Field(ge=-20.0, le=20.0)]) -> DriveReport:
        """Drive straight ahead or back, and answer on arrival. Fails if something is in the way.

        Args:
            distance_m: Metres ahead; negative goes back.
        """
        async with self._motion(call, f"moving {distance_m:g} m") as motion:
            covered = await motion.straight(distance_m)
            moved = round(covered.amount, 3)
            return _report(f"Moved {moved:g} m (asked: {distance_m:g} m)", covered.pose, moved_m=moved)

    @skill(resources={"base"}, tags={"motion"}, motion=True, undo="go_back")
    async def turn(self, call: Call, angle_deg: Annotated[float, Field(ge=-1080.0, le=1080.0)]) -> DriveReport:
        """Turn on the spot, and answer when that is done.

        Args:
            angle_deg: Degrees to the left; negative turns right. More than 360 turns more than once around.
        """
        async with self._motion(call, f"turning {angle_deg:g} deg") as motion:
            covered = await motion.turn(math.radians(angle_deg))
            turned = round(math.degrees(covered.amount), 1 if abs(angle_deg) >= 1 else 3)
            return _report(f"Turned {turned:g} deg (asked: {angle_deg:g} deg)", covered.pose, turned_deg=turned)

    @skill(resources={"base"}, tags={"motion"}, motion=True, undo="go_back")
    async def go_to(
        self, call: Call, x: Coordinate, y: Coordinate, timeout_s: Annotated[float, Field(gt=0.0)] = 60.0
    ) -> DriveReport:
        """Drive to a point, around obstacles near the way, and answer on arrival. Plans no route through rooms.

        Args:
            x: Metres, in the odom frame.
            y: Metres, in the odom frame.
            timeout_s: Seconds after which to give up.
        """
        async with self._motion(call, f"going to ({x:g}, {y:g})") as motion:
            try:
                self.report_state(scene_state(way(complex(x, y))))
                async with asyncio.timeout(timeout_s):
                    covered = await motion.go_to(complex(x, y))
                    left = round(covered.amount, 2)
                    return _report(f"Arrived {left:.2f} m from ({x:g}, {y:g})", covered.pose, from_goal_m=left)
            except TimeoutError:
                raise SkillError(f"not there within {timeout_s:g} s; {motion.whereabouts()}") from None

    @skill(resources={"base"}, tags={"motion"}, motion=True, audience="operator")
    async def go_back(
        self, call: Call, arguments: dict[str, Any], result: Any = None, call_id: str = ""
    ) -> DriveReport:
        """Take back a move or a go_to: return to where it began, and face as then. Of a turn, face as then.

        Args:
            arguments: Those of the call that is taken back.
            result: What it gave.
            call_id: Its id.
        """
        async with self._motion(call, f"going back to where {call_id} began") as motion:
            await motion.here()
            start = self._began.get(call_id)
            if start is None:
                raise SkillError(f"where call {call_id!r} began is not known")
            self.report_state(scene_state(way(start.position)))
            if "distance_m" in arguments:
                await motion.back_to(start)
            elif "angle_deg" not in arguments:
                await motion.go_to(start.position, needs_continuity=True)
            pose = (await motion.face(start.yaw)).pose
            left, aside = abs(pose.position - start.position), abs(math.degrees(wrapped(pose.yaw - start.yaw)))
            did = f"Went back, to {left:.2f} m and {aside:.1f} deg from where the call began"
            return _report(did, pose, from_goal_m=round(left, 2))

    @skill(name="stop", tags={"safe", "stop"})  # a module's own `stop` is a hook
    async def stop_driving(self, call: Call) -> str:
        """Stop driving: end every move, turn and go_to, and stand still."""
        self.cmd_vel.publish(STOP)
        ended = await self._calls.end(call, "stop was called")
        self.cmd_vel.publish(STOP)
        return f"Stopped {listed(ended)}" if ended else "Standing still"

    @contextlib.asynccontextmanager
    async def _motion(self, call: Call, what: str) -> AsyncIterator[Motion]:
        """The means to move during a call; the robot stands still afterwards."""
        motion = Motion(self, call, lambda: self.config)
        try:
            with self._calls.running(call, what):
                yield motion
        finally:
            if motion.began is not None:
                self._began[call.id] = motion.began
            motion.close()
            self.report_state({})
            self.cmd_vel.publish(STOP)

    def _watch_for_jumps(self, odometry: Odometry) -> None:
        """Forget where calls began, which nobody knows once odometry has jumped."""
        pose, now, config = pose_of(odometry), clock.monotonic(), self.config
        why = self._continuity.break_of(pose, now, longest_s=config.odom_timeout_s, max_speed=config.max_speed)
        if why and self._began:
            self.log.warning("%s Where calls before that began is not known now", why)
            self._began.clear()


def _report(did: str, pose: Pose, **measured: float) -> DriveReport:
    x, y, yaw = pose.position.real, pose.position.imag, math.degrees(pose.yaw)
    return DriveReport(x=round(x, 2), y=round(y, 2), yaw_deg=round(yaw, 1), did=did, **measured)
