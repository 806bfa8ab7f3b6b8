"""The record of one call of ``follow_person``, from which its report is made. Free of I/O; times are handed in."""

from __future__ import annotations

from dimos_streams.skills.follow_report import FollowReport


class FollowRecord:
    """The times at which the person was found and lost, in seconds on the loop's clock, and the distances to them."""

    def __init__(self) -> None:
        self.found_at: float | None = None
        """The time at which the person was first found; None before that."""
        self.lost_at: float | None = None
        """The time at which the person was lost; None while they are not."""
        self._lost_times, self._earlier_lost_s = 0, 0.0
        self._distance_sum, self._distance_count = 0.0, 0

    def find(self, now: float) -> None:
        """Note that the person was found, the first time or again."""
        if self.found_at is None:
            self.found_at = now
        else:
            self._earlier_lost_s += self.lost_s(now)
            self.lost_at = None

    def lose(self, now: float) -> None:
        """Note that the person was lost."""
        self.lost_at = now
        self._lost_times += 1

    def measure(self, distance: float) -> None:
        """Note a distance to the person, in metres."""
        self._distance_sum += distance
        self._distance_count += 1

    def pass_over(self, held_s: float) -> None:
        """Leave the last seconds out of all times."""
        if self.found_at is not None:
            self.found_at += held_s
        if self.lost_at is not None:
            self.lost_at += held_s

    def followed_s(self, now: float) -> float:
        """Return the seconds since the person was found; 0 before that."""
        return 0.0 if self.found_at is None else now - self.found_at

    def lost_s(self, now: float) -> float:
        """Return the seconds since the person was lost; 0 while they are not."""
        return 0.0 if self.lost_at is None else now - self.lost_at

    def report(self, description: str, now: float) -> FollowReport:
        """Return the report of a call whose time is over."""
        mean = self._distance_sum / self._distance_count if self._distance_count else None
        return FollowReport(
            description=description,
            reason="timeout",
            followed_s=round(self.followed_s(now), 1),
            mean_distance_m=None if mean is None else round(mean, 2),
            lost_times=self._lost_times,
            lost_s=round(self._earlier_lost_s + self.lost_s(now), 1),
        )
