"""Whether this process has missed datagrams because the kernel threw them away before they were read (Linux)."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/self/net/snmp")
_LOOK_S = 0.25
_ECHO_S = 0.5
"""A message to oneself that is not back after this time has been thrown away, or waits behind very many."""
_DEAF_S = 5.0
"""So long after one was missed whatever the kernel throws away may have been this process's: in a flood single ones
do come through."""


def thrown_away(counters: Path = _COUNTERS) -> int | None:
    """How many datagrams so far; None on a system without the count."""
    try:
        lines = counters.read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])
    except (OSError, ValueError):
        return None


class Overflow:
    """Follows the kernel's count, and whether this process hears itself.

    The count is one for all UDP sockets of the machine, or of the network namespace: what is counted for a single one
    includes whatever its filter refuses. Multicast comes back to whoever sends it; as long as one's own messages do,
    it is another socket that has no room.
    """

    def __init__(self, counters: Path = _COUNTERS) -> None:
        """``counters`` is in the form of ``/proc/net/snmp``; where there is none, nothing is ever known."""
        self._counters = counters
        self._count: int | None = None
        self._looked = self._said_at = self._missed_at = float("-inf")
        self._said: bytes | None = None
        self._grew = False
        """Whether more was thrown away since the message to oneself was said."""

    def said(self, data: bytes, now: float) -> None:
        """Take note of a message that this process sends and is to hear. One at a time is waited for."""
        if self._said is None and now - self._said_at >= _LOOK_S:
            self._said, self._said_at, self._grew = data, now, False

    def heard(self, data: bytes) -> None:
        """Take note of a message that has come."""
        if data == self._said:
            self._said = None

    def missed(self, now: float) -> bool:
        """Whether messages to this process may have been thrown away since the last look; four looks a second are
        taken, others say no. ``now`` is in seconds."""
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
