"""The rate at which something came."""

from __future__ import annotations

_LEAST_SPAN_S = 0.1


def rate_hz(count: int, span_s: float) -> float | None:
    """Return messages a second, of ``count`` whose first and last are ``span_s`` apart, or None where that tells
    nothing: two at once are no 600 kHz."""
    return (count - 1) / span_s if count > 1 and span_s >= _LEAST_SPAN_S else None
