"""The bounds of a journal: how much it keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    """Bounds of a journal. It is trimmed from its beginning, a bounded step at a time."""

    events: int = 200_000
    age_s: float = 86_400.0
    """Maximum age of an event, in seconds; what came before the clock was set counts as of that moment."""
    bytes: int = 256 * 1024 * 1024
    closed_calls: int = 2_000
    """Maximum number of closed calls whose state is kept beside the events. The ledger has the newest 1,000 of them
    in memory and looks the others up here."""
