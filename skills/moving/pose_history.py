"""The robot's poses of the last seconds."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams import clock
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.timeline import History
from dimos_streams.skills.moving.continuity import Continuity
from dimos_streams.skills.moving.obedience import FAST_MPS
from dimos_streams.skills.moving.planar import Pose, pose_of

_LONGEST_S = 0.5
"""The time between two odometry messages that counts at most: a robot is not driven for longer without any."""


class PoseHistory:
    """The robot's poses of the last seconds, so that what was measured a moment ago can be placed.

    Odometry that jumps begins another still frame, as the first one does: what was placed before is nowhere in it.
    """

    def __init__(self, measured_ahead: Callable[[], int | None] = lambda: 0) -> None:
        """``measured_ahead`` tells how far the clock of what is to be placed is ahead of odometry's, µs; None where
        that is not known."""
        self._measured_ahead = measured_ahead
        self._poses = self._begun()
        self._continuity = Continuity()
        self.frames = 0
        """The number of still frames of odometry so far."""

    def add(self, odometry: Odometry) -> None:
        """Take odometry that has just come."""
        now, pose = clock.monotonic(), pose_of(odometry)
        has_jumped = self._continuity.break_of(pose, now, longest_s=_LONGEST_S, max_speed=FAST_MPS)
        if has_jumped or not self.frames:
            self._poses = self._begun()
            self.frames += 1
        self._poses.add(utime_of(odometry.header), now, pose)

    def at(self, stamp: int, arrived: float) -> Pose | None:
        """The pose when something was measured whose stamp, and whose arrival on the loop's clock, are given; None if
        that was before the poses that are known.

        The origin while there is none, so that the robot's frame is the still one.
        """
        return Pose() if self._poses.latest is None else self._poses.at(stamp, arrived)

    def age_us(self, stamp: int, now: float) -> int | None:
        """Return the µs since something with that stamp was measured, by odometry's clock; None if its clock is
        another."""
        return self._poses.age_us(stamp, now)

    def latest(self) -> Pose:
        """The newest pose; the origin while there is none."""
        return self._poses.latest or Pose()

    def _begun(self) -> History[Pose]:
        return History("odometry", other_ahead=self._measured_ahead)
