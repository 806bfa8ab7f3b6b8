"""The events that hold until others replace them: what the operator has set, and what was learnt of servers."""

from __future__ import annotations

from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.operator.messages.agent import AgentEvent

_MODES = (EventKind.PAUSE, EventKind.RESUME, EventKind.STEP)


class StandingEvents:
    """Keeps the newest event of each such setting, however long ago it was. There is one for each thing that was
    set."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, ...], AgentEvent] = {}

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """The events, oldest first. A process that begins with them and nothing else has every setting."""
        return tuple(sorted(self._newest.values(), key=lambda event: event.number))

    def apply(self, event: AgentEvent) -> None:
        """Take in an event, if it is one that stands."""
        setting = _setting(event)
        if setting is not None:
            self._newest[setting] = event


def _setting(event: AgentEvent) -> tuple[str, ...] | None:
    """The setting that an event is about, or None for an event that leaves all as it was."""
    kind, data = event.kind, event.data
    if kind in _MODES and (kind != EventKind.STEP or data["phase"] == "on"):
        return ("mode",)
    if kind in (EventKind.MODEL_SWITCH, EventKind.FORGOTTEN, EventKind.CONSOLE):
        return (kind,)
    if kind == EventKind.SKILL_SET:
        return kind, data["skill"]
    if kind == EventKind.NOTE and "lesson" in data:
        return "lesson", data["model"], data["lesson"]
    return None
