"""The missions from before a stop of the robot, or its release: whatever moves it in them, an operator is asked
before."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.missions.end_state import stopped_by
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import Emit, EventKind, tool_event_of
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent

_MISSIONS = 1000
_NOTE = "The robot was stopped after this was asked for: whatever moves it here is to be approved before"
OF_NONE = ""
"""What is of no mission, as calls from before the agent was started are, counts as one of its own."""


class StoppedMissions:
    """Counts how often the robot was stopped or released while missions went on; a mission and its sub-missions are
    one. The first time for each is an event, which outlives the process: ``restore`` takes it from the record."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._stops = NewestEntries[str, int](_MISSIONS)

    def stop(self, missions: Iterable[str]) -> None:
        """Note that the robot was stopped or released while these missions went on."""
        over = _roots(missions)
        if new := [root for root in over if root != OF_NONE and root not in self._stops]:
            self._emit(EventKind.NOTE, new, text=_NOTE, stopped=True)
        self._count(over)

    def stops(self, missions: Iterable[str]) -> int:
        """The number of stops and releases since the oldest of these missions was begun: a turn that takes up several
        of them does not say for which of them a call is."""
        return max(self._stops.get(root, 0) for root in _roots(missions))

    def restore(self, event: AgentEvent) -> None:
        """Note what an event of the record says: also the end of a call, behind which the process may have died."""
        note = EventKind.NOTE.data_of(event)
        if (note and note.get("stopped")) or stopped_by(tool_event_of(event)):
            self._count(_roots(event.missions))

    def _count(self, missions: Iterable[str]) -> None:
        for root in missions:
            self._stops[root] = self._stops.get(root, 0) + 1


def _roots(missions: Iterable[str]) -> tuple[str, ...]:
    return roots(missions) or (OF_NONE,)
