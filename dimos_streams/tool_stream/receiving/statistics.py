"""The counts of a receiver of tool streams."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReceiverStatistics:
    """Counts since the receiver began."""

    delivered: int
    duplicates: int
    malformed: int
    nacks: int
    gaps: int
    """Number of events that were given up, each reported to the readers."""
    refused: int
    """Number of events that were refused, because they were in the name of somebody else's call."""
