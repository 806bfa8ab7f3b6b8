"""The rate at which something came."""

from __future__ import annotations

_LEAST_SPAN_S = 0.1


def rate_hz(count: int, span_s: float) -> float | None:
    """Return the messages in a second if the first and the last of ``count`` are ``span_s`` apart.

    It is None where that tells nothing: two messages at the same moment do not come at 600 kHz.
    """
    return (count - 1) / span_s if count > 1 and span_s >= _LEAST_SPAN_S else None
