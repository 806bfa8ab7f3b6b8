"""Detection of datagrams that the kernel threw away before this process read them (Linux)."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/self/net/snmp")
_LOOK_S = 0.25
_ECHO_S = 0.5
"""The time after which a message to oneself that has not come back was thrown away, or waits behind very many; in
seconds."""
_DEAF_S = 5.0
"""The time after a miss, in seconds, within which whatever the kernel throws away may have been this process's: in a
flood single messages do come through."""


def thrown_away(counters: Path = _COUNTERS) -> int | None:
    """Return the number of datagrams thrown away so far, or None on a system without the count."""
    try:
        lines = counters.read_text(encoding="utf-8").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])
    except (OSError, ValueError):
        return None


class Overflow:
    """An observer of the kernel's count that also checks whether this process hears itself.

    There is one count for all UDP sockets of the machine, or of the network namespace; a single socket's count is of
    no use, because it includes whatever its filter refuses. Multicast comes back to whoever sends it; as long as
    one's own messages do, it is another socket that has no room.
    """

    def __init__(self, counters: Path = _COUNTERS) -> None:
        """``counters`` is a file in the form of ``/proc/net/snmp``; without it nothing is ever known."""
        self._counters = counters
        self._count: int | None = None
        self._looked = self._said_at = self._missed_at = float("-inf")
        self._said: bytes | None = None
        self._grew = False
        """True if more was thrown away since the message to oneself was sent."""

    def said(self, data: bytes, now: float) -> None:
        """Take note of a message that this process sends and should hear. Only one at a time is waited for."""
        if self._said is None and now - self._said_at >= _LOOK_S:
            self._said, self._said_at, self._grew = data, now, False

    def heard(self, data: bytes) -> None:
        """Take note of a message that has come."""
        if data == self._said:
            self._said = None

    def missed(self, now: float) -> bool:
        """Return whether messages to this process may have been thrown away since the last look. It looks four times
        a second, and returns False in between. ``now`` is in seconds."""
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        before, self._count = self._count, thrown_away(self._counters)
        grew = before is not None and self._count is not None and self._count > before
        self._grew |= grew
        if self._said is not None and now - self._said_at >= _ECHO_S:
            self._said = None
            if self._grew:
                self._missed_at = now
        return now == self._missed_at or (grew and now - self._missed_at < _DEAF_S)
