"""The missions that a stop of the robot has come after: whatever moves it in them, an operator is asked before."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.missions.end_state import stopped_by
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import Emit, EventKind, tool_event_of
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent

_MISSIONS = 1000
_NOTE = "The robot was stopped after this was asked for: whatever moves it here is to be approved before"


class StoppedMissions:
    """Remembers missions from before a stop; a mission and its sub-missions are one. The first stop of each is an
    event, so that it outlives the process: ``restore`` takes it from the record."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._stops = NewestEntries[str, int](_MISSIONS)

    def stop(self, missions: Iterable[str]) -> None:
        """Note that the robot was stopped while these missions went on."""
        over = roots(missions)
        self._tell(over)
        for root in over:
            self._stops[root] = self._stops.get(root, 0) + 1

    def release(self, missions: Iterable[str]) -> None:
        """Note that the robot was released, and that these missions have begun before that."""
        over = roots(missions)
        self._tell(over)
        self._take(over)

    def stops(self, missions: Iterable[str]) -> int:
        """The number of stops since the newest of these missions was begun: a call that is also of one from after
        them was asked for since. There are none where there is no mission."""
        return min((self._stops.get(root, 0) for root in roots(missions)), default=0)

    def restore(self, event: AgentEvent) -> None:
        """Note what an event of the record says: also the end of a call, behind which the process may have died."""
        note = EventKind.NOTE.data_of(event)
        if (note and note.get("stopped")) or stopped_by(tool_event_of(event)):
            self._take(roots(event.missions))

    def _tell(self, missions: Iterable[str]) -> None:
        if new := [each for each in missions if each not in self._stops]:
            self._emit(EventKind.NOTE, new, text=_NOTE, stopped=True)

    def _take(self, missions: Iterable[str]) -> None:
        for root in missions:
            self._stops[root] = self._stops.get(root, 1)
