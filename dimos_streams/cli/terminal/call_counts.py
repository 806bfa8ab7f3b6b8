"""Counts of the calls in a run, and which entries of conversations are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.plural import plural
from dimos_streams.operator.agents import is_conversation, is_look

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent

_REMEMBERED = 10_000


class CallCounts:
    """Counts of calls by outcome, and of a model's calls that never began; the operator's input does not count."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._open: dict[str, None] = {}
        self._entries = NewEntries()

    def count(self, event: ToolEvent) -> None:
        """Count what an event reports."""
        if is_conversation(event):
            entry = event.data.get("entry")
            if isinstance(entry, Mapping) and self._entries.is_new(event.module, entry) and is_refused(entry):
                self._outcomes["refused"] += 1
            return
        if is_look(event):
            return
        if event.type == "close":
            self._open.pop(event.call_id, None)
            self._outcomes[event.outcome or "failed"] += 1
        elif event.type != "gap":
            self._open[event.call_id] = None

    def to_dict(self) -> dict[str, int]:
        """Return the counts for JSON."""
        left = {"open": len(self._open)} if self._open else {}
        return dict(self._outcomes) | left

    def __str__(self) -> str:
        counts = self.to_dict()
        if not counts:
            return "no calls"
        return f"{plural(sum(counts.values()), 'call')}: {', '.join(f'{n} {name}' for name, n in counts.items())}"


class NewEntries:
    """A filter for entries of conversations that were not seen yet: what belongs to two missions comes twice."""

    def __init__(self) -> None:
        self._seen = NewestEntries[tuple[str, int], None](_REMEMBERED)

    def is_new(self, module: str, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry of a module's conversation was not seen before, and note it. Entries come from
        outside: one without a number is new."""
        number = entry.get("number")
        if not isinstance(number, int):
            return True
        key = (module, number)
        if key in self._seen:
            return False
        self._seen[key] = None
        return True


def is_refused(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry tells a model that a call of its own never began; other calls have a tool stream."""
    return entry.get("role") == "tool" and bool(entry.get("is_error")) and not entry.get("call_id")
