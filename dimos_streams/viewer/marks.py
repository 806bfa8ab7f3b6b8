"""The moments of a recording that it can be stepped to, and that the page's slider shows."""

from __future__ import annotations

import bisect
from array import array
from typing import Any

from dimos_streams.operator.agents import is_conversation
from dimos_streams.tool_stream.event import ToolEvent

MAX_SHOWN = 1500
_TEXT = 120


class Marks:
    """Events of calls but for progress, in the order of time. Of many every second is shown, every fourth, …"""

    def __init__(self) -> None:
        self._utimes = array("q")
        self._shown: list[dict[str, Any]] = []
        self._seen = 0
        """The number of marks that the slider would show if there were few."""
        self._every = 1

    def add(self, utime: int, event: ToolEvent) -> None:
        """Add an event that was handed on at a time of the log."""
        if event.type == "progress":
            return
        self._utimes.append(utime)
        if is_conversation(event) and event.type != "open":
            return  # it repeats what the calls say
        self._seen += 1
        if (self._seen - 1) % self._every:
            return
        kind = str(event.outcome) if event.type == "close" else event.type
        self._shown.append({"utime": utime, "kind": kind, "text": f"{event.skill}: {event.text}"[:_TEXT]})
        if len(self._shown) > MAX_SHOWN:
            self._shown, self._every = self._shown[::2], 2 * self._every

    @property
    def left_out(self) -> int:
        """The number of marks that the slider does not show."""
        return self._seen - len(self._shown)

    def shown(self) -> list[dict[str, Any]]:
        """The marks on the slider: ``utime``, ``kind`` (an event's type, of a close the outcome) and ``text``."""
        return self._shown

    def after(self, utime: int) -> int | None:
        """The first mark behind a moment, or None if there is none."""
        index = bisect.bisect_right(self._utimes, utime)
        return self._utimes[index] if index < len(self._utimes) else None

    def before(self, utime: int) -> int | None:
        """The last mark before a moment, or None if there is none."""
        index = bisect.bisect_left(self._utimes, utime)
        return self._utimes[index - 1] if index else None
