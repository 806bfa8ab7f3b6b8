"""The report of ``patrol`` at its end."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.common.readable.listed import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Encounter:
    """Somebody whom the guard met."""

    label: str
    utime: int
    """The time at which they were noticed, µs since the Unix epoch."""
    x: float | None
    """Their place in the odom frame, or None if depth is unknown."""
    y: float | None
    followed_s: float
    """0 if they were only reported, or never found again."""
    ended: str
    """The reason why following ended."""

    def __str__(self) -> str:
        where = "" if self.x is None or self.y is None else f" at ({self.x:.1f}, {self.y:.1f})"
        followed = f", followed for {self.followed_s:.0f} s" if self.followed_s else ""
        return f"{self.label}{where}{followed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolReport:
    """The result of a patrol."""

    rounds: int
    reached: int
    """The number of way-points that were reached, over all rounds."""
    missed: int
    """The number of way-points that could not be reached."""
    met: int
    """The number of encounters."""
    encounters: tuple[Encounter, ...]
    """The newest of them, in the order in which they were; of each there was an update."""
    home_m: float | None = None
    """The metres between its end and its beginning, or None if it was not to return."""

    def __str__(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        missed = f", {self.missed} could not be reached" if self.missed else ""
        home = "" if self.home_m is None else f" Ended {self.home_m:.2f} m from where it began."
        return f"Patrolled {rounds}, {self.reached} way-points{missed}. {self._met}.{home}"

    @property
    def _met(self) -> str:
        if not self.encounters:
            return "Met nobody"
        people = listed([str(each) for each in self.encounters])
        if self.met == len(self.encounters):
            return f"Met {people}"
        return f"Had {self.met} encounters, the newest with {people}"
