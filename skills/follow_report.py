"""The report of ``follow_person`` at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowReport:
    """The result of following somebody."""

    description: str
    reason: Literal["timeout"]
    followed_s: float
    """Seconds since the first sighting, but for those in which the robot was held."""
    mean_distance_m: float | None
    """The mean distance to the person, or None if depth was never known."""
    lost_times: int
    lost_s: float = 0.0
    """Seconds for which the person was lost, but for those in which the robot was held."""

    def __str__(self) -> str:
        distance = "" if self.mean_distance_m is None else f" at {self.mean_distance_m:.1f} m on average"
        times = "once" if self.lost_times == 1 else f"{self.lost_times} times"
        lost = f", lost {times} for {self.lost_s:.0f} s in all" if self.lost_times else ""
        return (
            f"Stopped following {self.description}: the time is over. "
            f"Followed for {self.followed_s:.0f} s{distance}{lost}."
        )
