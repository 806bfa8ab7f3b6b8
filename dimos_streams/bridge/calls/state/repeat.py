"""The schedule by which what nobody has reacted to is sent again."""

from __future__ import annotations

from dataclasses import dataclass, field

from dimos_streams import clock

_LONGEST_PAUSE_S = 0.5


@dataclass(slots=True)
class Repeat:
    """The schedule for repeating a message that nobody has reacted to; each pause is longer than the one before."""

    at: float
    pause: float = 0.1
    sent: int = 0
    utime: int = field(default_factory=clock.utime)
    """Time at which it was first to be sent, µs since the Unix epoch."""
    since: float = field(default_factory=clock.monotonic)
    """The same on the monotonic clock, which nobody sets."""

    def anew(self, now: float) -> Repeat:
        """The schedule for another message that says the same, and more: that was first to be sent when this was."""
        return Repeat(now, utime=self.utime, since=self.since)

    def take_turn(self, now: float) -> bool:
        """Take the turn to send, if it has come, and set the next one; return whether it was taken."""
        if now < self.at:
            return False
        self.at, self.pause, self.sent = now + self.pause, min(self.pause * 1.5, _LONGEST_PAUSE_S), self.sent + 1
        return True
