"""Whether the kernel has thrown datagrams away because nobody read them in time (Linux)."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/self/net/snmp")
_LOOK_S = 0.25


def thrown_away(counters: Path = _COUNTERS) -> int | None:
    """How many datagrams so far; None on a system without the count."""
    try:
        lines = counters.read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])
    except (OSError, ValueError):
        return None


class Overflow:
    """Follows the kernel's count. It is one for all UDP sockets of the machine, or of the network namespace: what is
    counted for a single one includes whatever its filter refuses."""

    def __init__(self, counters: Path = _COUNTERS) -> None:
        """``counters`` is in the form of ``/proc/net/snmp``; where there is none, nothing is ever known."""
        self._counters = counters
        self._count: int | None = None
        self._looked = float("-inf")

    def grew(self, now: float) -> bool:
        """Whether more were thrown away since the last look; four looks a second are taken, others say no. ``now`` is
        in seconds."""
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        before, self._count = self._count, thrown_away(self._counters)
        return before is not None and self._count is not None and self._count > before
