"""The counts of a client of server-sent events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SseStatistics:
    """Counts since ``start``."""

    connections: int = 0
    """Number of answers that were event streams."""
    failures: int = 0
    """Number of attempts and connections that ended for reasons other than ``stop``."""
    events: int = 0
    bytes: int = 0
    """Size of all content, without chunked-encoding overhead."""
    malformed: int = 0
    """Number of events that were skipped because they were too large."""
    last_failure: str = ""
