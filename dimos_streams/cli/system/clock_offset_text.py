"""The offset of another machine's clock, in words."""

from __future__ import annotations


def clock_offset_text(ahead_us: int, within_us: int) -> str:
    """Return ``"12.3 ms ahead, within 0.4 ms"``, or behind."""
    return f"{_time(abs(ahead_us))} {'ahead' if ahead_us >= 0 else 'behind'}, within {_time(within_us)}"


def _time(us: int) -> str:
    seconds = us / 1e6
    if seconds < 1.0:
        return f"{us / 1e3:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 600.0 else f"{seconds / 3600.0:.1f} h"
