"""The counts of a client of server-sent events."""

from __future__ import annotations

from typing import NamedTuple


class SseStatistics(NamedTuple):
    """Counts since ``start``."""

    connections: int
    """Number of answers that were event streams."""
    failures: int
    """Number of attempts and connections that ended for reasons other than ``stop``."""
    events: int
    bytes: int
    """Size of all content, without chunked-encoding overhead."""
    malformed: int
    """Number of events that were skipped because they were too large."""
    last_failure: str
