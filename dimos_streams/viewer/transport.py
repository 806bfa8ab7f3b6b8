"""The clock of a recording: played, paused, slower and faster, and set to any moment."""

from __future__ import annotations

from dataclasses import dataclass

SLOWEST, FASTEST = 0.25, 16.0


@dataclass(slots=True)
class Transport:
    """The clock of a recording. Times of the log are µs; ``now`` is a steady clock's, in seconds, handed in."""

    begin: int
    end: int
    speed: float = 1.0
    playing: bool = False
    _position: int = 0
    _since: float = 0.0

    def __post_init__(self) -> None:
        self._position = self.begin

    def at(self, now: float) -> int:
        """The moment that is shown. At the end it stops playing."""
        if self.playing:
            utime = self._position + round((now - self._since) * self.speed * 1e6)
            if utime >= self.end:
                self._position, self.playing = self.end, False
            else:
                return max(self.begin, utime)
        return self._position

    def play(self, now: float) -> None:
        """Go on; from the beginning if it is at its end."""
        if self.at(now) >= self.end:
            self._position = self.begin
        else:
            self._position = self.at(now)
        self.playing, self._since = self.end > self.begin, now

    def pause(self, now: float) -> None:
        """Stand still."""
        self._position, self.playing = self.at(now), False

    def set_speed(self, now: float, speed: float) -> None:
        """Go on ``speed`` times as fast as it was recorded, within bounds."""
        self._position, self._since = self.at(now), now
        self.speed = min(FASTEST, max(SLOWEST, speed))

    def seek(self, now: float, utime: int) -> None:
        """Go on from another moment, or stand there."""
        self._position, self._since = min(self.end, max(self.begin, utime)), now
