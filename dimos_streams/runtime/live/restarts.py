"""The restarts of one process: how many, after which pause, and whether it keeps failing."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams import clock

STEADY_AFTER_S = 10.0
"""The time, in seconds, after which what ended an earlier process does not count any more."""
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0


@dataclass
class Restarts:
    """The restarts of one process so far, and the pause before the next one."""

    count: int = 0
    pause_s: float = 0.0
    """The pause before the last restart after a failure, in seconds."""
    ended_again: str = ""
    """The reason for which its last process ended, if the one before it had ended shortly before, too."""
    began_at: float = 0.0
    """The time on the loop's clock at which its process began."""

    @property
    def steady(self) -> bool:
        """True if its process has lasted long enough, so that its end would be a first one again."""
        return clock.monotonic() - self.began_at >= STEADY_AFTER_S

    def back_off(self, why: str) -> None:
        """Count a restart after an end, for which there is a reason. The pause before it doubles while its processes
        keep ending."""
        first = self.steady or not self.pause_s
        self.pause_s = _FIRST_PAUSE_S if first else min(_LONGEST_PAUSE_S, 2 * self.pause_s)
        self.ended_again = "" if first else why
        self.count += 1

    def renew(self) -> None:
        """Count a restart with other code: what ended the old one says nothing of it."""
        self.ended_again, self.pause_s = "", 0.0
        self.count += 1
