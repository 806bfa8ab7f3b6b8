"""The test of whether odometry goes on from where it was. Free of I/O; times are handed in."""

from __future__ import annotations

from dimos_streams.skills.moving.obedience import FAST_MPS, TOO_FAST
from dimos_streams.skills.moving.planar import Pose

JUMP_M = 2.0
"""The way between two poses, beyond what the robot may have gone meanwhile, from which on it is a jump: localization
corrects itself by less from time to time, and people push robots."""


class Continuity:
    """Compares each pose with the one before it.

    Where the robot can't have come so far, its odometry has begun anew, or has found that it is somewhere else: then
    nothing that was measured before says where that is now.
    """

    def __init__(self) -> None:
        self._last: Pose | None = None
        self._heard_at = 0.0

    def break_of(self, pose: Pose, now: float, *, longest_s: float, max_speed: float) -> str:
        """Return how odometry has jumped, by a pose that has come ``now``, s on the loop's clock; or nothing. A robot
        is driven at ``max_speed``, m/s, for ``longest_s`` at most without any."""
        last, self._last = self._last or pose, pose
        elapsed_s, self._heard_at = min(now - self._heard_at, longest_s), now
        moved = abs(pose.position - last.position)
        if moved <= JUMP_M + TOO_FAST * max(max_speed, FAST_MPS) * elapsed_s:
            return ""
        limit = f"where it was told at most {max_speed:g} m/s"
        return (
            f"the robot's odometry has jumped by {moved:.1f} m {limit}: are its units metres? Or has it begun anew?"
        )
