"""The missions from before a stop of the robot, or its release: whatever moves it in them, an operator is asked
before."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.missions.end_state import stopped_by
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import tool_event_of
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent

_MISSIONS = 1000
OF_NONE = ""
"""What is of no mission, as calls from before the agent was started are, counts as one of its own."""


class StoppedMissions:
    """Counts how often the robot was stopped or released while missions went on; a mission and its sub-missions are
    one. That a stop has ended a call of one outlives the process: ``restore`` takes that from the record."""

    def __init__(self) -> None:
        self._stops = NewestEntries[str, int](_MISSIONS)

    def stop(self, missions: Iterable[str]) -> None:
        """Note that the robot was stopped or released while these missions went on."""
        for root in _roots(missions):
            self._stops[root] = self._stops.get(root, 0) + 1

    def stops(self, missions: Iterable[str]) -> int:
        """The number of stops and releases since the newest of these missions was begun: a call that is also of one
        from after them was asked for since."""
        return min(self._stops.get(root, 0) for root in _roots(missions))

    def restore(self, event: AgentEvent) -> None:
        """Note what an event of the record says."""
        if stopped_by(tool_event_of(event)):
            self.stop(event.missions)


def _roots(missions: Iterable[str]) -> tuple[str, ...]:
    return roots(missions) or (OF_NONE,)
