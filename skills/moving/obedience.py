"""The test of whether a robot moves as it is told, by its odometry. Free of I/O; times are handed in."""

from __future__ import annotations

from dimos_streams.errors import SkillError
from dimos_streams.skills.moving.planar import Pose, clamped, turned, wrapped

SOME = 0.3
"""The share of what a robot could move by at its full speed that counts as motion where the robot is slow."""
AGAINST_S = 1.0
"""Seconds of motion against the commands from which on it is no push and no overshoot."""
TOO_FAST = 10.0
"""How many times the robot's full speed its odometry has to say that something is wrong with its units."""
FAST_MPS = 0.5
"""The least speed that counts as full: slower ones drown in the noise of odometry."""


class DisobedienceError(SkillError):
    """Raised when the robot contradicts its commands for too long. No skill may go on with something else after it:
    each further command moves the robot where nobody wants it."""


class Obedience:
    """Compares how the robot moved with the commands that it got before.

    It counts seconds of motion in the wrong direction, less those in the right one. A look counts for no more motion
    than was commanded in that time, so that neither a shove nor a correction of the pose weighs much, and for less
    where hardly any was: a robot may drift against what its motors do not feel, and odometry is noisy.
    """

    def __init__(self) -> None:
        self._velocity, self._turn = 0j, 0.0
        self._pose: Pose | None = None
        self._moved_s = self._turned_s = self._fast_s = 0.0

    def command(self, velocity: complex, turn: float) -> None:
        """Take the command that the robot gets from now on: a velocity of base_link, m/s, and a turn, rad/s."""
        self._velocity, self._turn = velocity, turn

    def contradiction(self, pose: Pose, elapsed_s: float, max_speed: float, max_turn: float) -> str:
        """Return what is wrong with the motion of late, by a new pose and the time since the last one; or nothing."""
        last, self._pose = self._pose or pose, pose
        moved = (pose.position - last.position) * turned(-last.yaw)
        self._moved_s = _counted(self._moved_s, moved, self._velocity, max_speed, elapsed_s)
        turn = wrapped(pose.yaw - last.yaw)
        self._turned_s = _counted(self._turned_s, complex(turn), complex(self._turn), max_turn, elapsed_s)
        fast = abs(moved) > TOO_FAST * max(max_speed, FAST_MPS) * elapsed_s
        self._fast_s = max(0.0, self._fast_s + (elapsed_s if fast else -elapsed_s))
        if self._fast_s > AGAINST_S:
            said = f"the robot's odometry says {abs(moved) / elapsed_s:.0f} m/s"
            return f"{said} where it was told at most {max_speed:g} m/s: are its units metres?"
        if self._turned_s > AGAINST_S:
            return (
                "the robot turns against its commands: is yaw counter-clockwise positive, and angular.z too? "
                "Or does somebody else drive it?"
            )
        if self._moved_s > AGAINST_S:
            return (
                "the robot moves against its commands: are x of its odometry and linear.x positive ahead? "
                "Or does somebody else drive it?"
            )
        return ""


def _counted(against_s: float, moved: complex, commanded: complex, fastest: float, elapsed_s: float) -> float:
    """Return the seconds of motion against the commands, after one more look."""
    if not commanded:
        return against_s
    along = (moved * commanded.conjugate()).real / abs(commanded)
    as_commanded = clamped(along, abs(commanded) * elapsed_s)
    return max(0.0, against_s - as_commanded / max(abs(commanded), SOME * fastest))
