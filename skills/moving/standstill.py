"""The test of whether a robot that is to move stands still, by its odometry. Free of I/O; times are handed in."""

from __future__ import annotations

from dimos_streams.skills.moving.obedience import SOME
from dimos_streams.skills.moving.planar import Pose, wrapped

MOVED_M = 0.1
TURNED_RAD = 0.15


class Standstill:
    """Measures for how long a robot has neither moved nor turned, in seconds of driving."""

    def __init__(self) -> None:
        self._pose, self._since_s = Pose(), 0.0

    def restart(self, now_s: float) -> None:
        """Leave out the time before now: the robot was held, or has just gone aside."""
        self._since_s = now_s

    def lasts_longer_than(
        self, bound_s: float, pose: Pose, now_s: float, *, max_speed: float, max_turn: float
    ) -> bool:
        """Return whether a robot with these greatest speeds, m/s and rad/s, has stood still for more than a bound,
        by its pose now."""
        has_moved = abs(pose.position - self._pose.position) > least_motion(MOVED_M, max_speed, bound_s)
        has_turned = abs(wrapped(pose.yaw - self._pose.yaw)) > least_motion(TURNED_RAD, max_turn, bound_s)
        if has_moved or has_turned:
            self._pose, self._since_s = pose, now_s
        return now_s - self._since_s > bound_s


def least_motion(usual: float, fastest: float, within_s: float) -> float:
    """Return the metres or radians from which on a robot counts as moving: the usual ones, or fewer where its full
    speed (m/s or rad/s) hardly covers these in the time (s)."""
    return min(usual, SOME * fastest * within_s)
