"""The calls of the agent that may be taken back, as its events say."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.record.event_data.calls import CallOpenData
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.close_data import NOT_RUN

UNKNOWN = "it is not known how far that came"
_CAPACITY = 200
_CLOSE_AT_ONCE = 2
"""The number of a close that nothing but the ``open`` comes before."""


@dataclasses.dataclass(slots=True, kw_only=True)
class UndoEntry:
    """A call that was begun, with what is needed to take it back."""

    call_id: str
    skill: str
    arguments: Mapping[str, Any]
    undo: str = ""
    """The skill that takes it back; empty if there is none."""
    reversible: bool = True
    missions: tuple[str, ...] = ()
    result: Any = None
    begun: bool = False
    """True if taking it back was begun."""
    unclear: bool = False
    """True if that was begun in a process that died, so that nobody knows how far it came."""

    @property
    def doubt(self) -> str:
        """The reason why it is not known how far taking it back has come, so that it is not begun again; or empty."""
        if not self.begun:
            return ""
        how = "the agent was restarted while it was taken back" if self.unclear else "taking it back was aborted"
        return f"{how}; {UNKNOWN}"


class UndoLog:
    """The newest ``_CAPACITY`` calls that have changed the world; made of the agent's events, so it outlives the
    agent."""

    def __init__(self) -> None:
        self._entries: deque[UndoEntry] = deque(maxlen=_CAPACITY)

    @property
    def entries(self) -> tuple[UndoEntry, ...]:
        """The calls, oldest first."""
        return tuple(self._entries)

    def apply(self, event: AgentEvent) -> None:
        """Take in what an event says of calls."""
        if begun := EventKind.CALL_OPEN.data_of(event):
            if not begun.get("senses"):
                self._add(begun, event.missions)
        elif undo := EventKind.UNDO.data_of(event):
            if undo["phase"] == "end" and not undo.get("left"):
                self._remove(undo["call_id"])
                return
            for entry in self._entries:
                if entry.call_id == undo["call_id"]:
                    entry.begun = undo["phase"] == "start"
        elif tool_event := tool_event_of(event):
            self._note_result(tool_event)

    def restarted(self) -> None:
        """Note that all so far was done by a process that died."""
        for entry in self._entries:
            entry.unclear = entry.begun

    def newest(self, count: int | None, missions: Iterable[str] | None = None) -> list[UndoEntry]:
        """The newest ``count`` calls, or all if it is None, newest first; with ``missions``, only calls of these."""
        wanted = None if missions is None else set(missions)
        found = [entry for entry in reversed(self._entries) if wanted is None or wanted & set(entry.missions)]
        return found[:count]

    def _add(self, begun: CallOpenData, missions: tuple[str, ...]) -> None:
        entry = UndoEntry(
            call_id=begun["call_id"],
            skill=begun["skill"],
            arguments=begun["arguments"],
            undo=begun.get("undo", ""),
            reversible=begun.get("reversible", True),
            missions=missions,
        )
        self._entries.append(entry)

    def _note_result(self, event: ToolEvent) -> None:
        if event.type != "close":
            return
        if not may_have_run(event):
            self._remove(event.call_id)
            return
        for entry in reversed(self._entries):
            if entry.call_id == event.call_id:
                entry.result = event.data.get("result")
                return

    def _remove(self, call_id: str) -> None:
        for entry in self._entries:
            if entry.call_id == call_id:
                self._entries.remove(entry)
                return


def may_have_run(close: ToolEvent) -> bool:
    """Return whether anything of a call's skill may have run, as its close says: otherwise there is nothing to take
    back. One that has reported something has run, whatever a module says of it."""
    return close.seq > _CLOSE_AT_ONCE or (close.outcome is not Outcome.REJECTED and not close.data.get(NOT_RUN))
