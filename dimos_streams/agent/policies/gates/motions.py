"""The number of motions that each mission has begun without a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent

_MISSIONS = 1000


class FreeMotions:
    """Counts motions by mission; a mission and its sub-missions are one. Each change is an event, so a count outlives
    its process: ``restore`` takes it from the record."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._begun = NewestEntries[str, int](_MISSIONS)

    def begun(self, missions: Iterable[str]) -> int:
        """The motions begun by the one of these missions that has begun most."""
        return max(self._begun.get(root, 0) for root in _roots(missions))

    def begin(self, skill: str, missions: Sequence[str]) -> Callable[[], None]:
        """Count one more motion. Return a function that takes that back, for a motion that did not begin."""
        self._change(skill, missions, 1)
        return lambda: self._change(skill, missions, -1)

    def restore(self, event: AgentEvent) -> None:
        """Count what an event of the record says."""
        if data := EventKind.FREE_MOTION.data_of(event):
            self._count(event.missions, data["motions"])

    def _change(self, skill: str, missions: Sequence[str], motions: Literal[1, -1]) -> None:
        self._count(missions, motions)
        self._emit(EventKind.FREE_MOTION, missions, skill=skill, motions=motions)

    def _count(self, missions: Iterable[str], motions: int) -> None:
        for root in _roots(missions):
            self._begun[root] = max(0, self._begun.get(root, 0) + motions)


def _roots(missions: Iterable[str]) -> tuple[str, ...]:
    return roots(missions) or ("",)
