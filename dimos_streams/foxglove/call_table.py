"""The calls of a run as far as their events were seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.tool_stream.wire.layout import INSTANCE

MAX_CALLS = 1000
"""The largest number of open calls; of more the eldest are forgotten."""
MAX_CLOSED = 1000
"""The largest number of closed calls of which late events are recognized; of more the eldest are forgotten."""


@dataclass(slots=True)
class TracedCall:
    """The state of an open call, as far as its events were seen."""

    seq: int = 0
    began_utime: int | None = None
    """The time at which it was opened, µs since the Unix epoch, or None if that was not seen."""
    parent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    """The values in its newest progress that are no lists or objects."""


class TracedCalls:
    """Folds events into calls. An event that comes again, as after a loss, changes nothing."""

    def __init__(self) -> None:
        self._open = NewestEntries[str, TracedCall](MAX_CALLS)
        self._closed = NewestEntries[str, None](MAX_CLOSED)

    def __len__(self) -> int:
        return len(self._open)

    def after(self, event: ToolStreamEvent, data: Mapping[str, Any]) -> TracedCall | None:
        """The event's call as it is then, or None if that is no news of it; ``data`` is what the event carries."""
        if event.call_id in self._closed:
            return None
        call = self._open.get(event.call_id) or TracedCall()
        if event.seq <= call.seq:
            return None
        _fold(call, event, data)
        if event.type == "close":
            self._open.pop(event.call_id, None)
            self._closed[event.call_id] = None
        elif event.call_id not in self._open:
            self._open[event.call_id] = call
        return call


def _fold(call: TracedCall, event: ToolStreamEvent, data: Mapping[str, Any]) -> None:
    call.seq = event.seq
    if event.type == "open":
        parent, arguments = data.get("parent"), data.get("arguments")
        call.began_utime = event.utime
        call.parent = parent if isinstance(parent, str) else ""
        call.arguments = arguments if isinstance(arguments, dict) else {}
    elif event.type == "progress":
        call.progress = {
            name: value for name, value in data.items() if name != INSTANCE and not isinstance(value, list | dict)
        }
