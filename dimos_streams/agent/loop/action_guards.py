"""The guards against missions that go on and on by themselves, one for each mission of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dimos_streams.agent.missions.mission import ActionGuard, Mission, with_parents


class ActionGuards:
    """Finds the guard of each mission that a loop works on, and of what belongs to no mission."""

    def __init__(self, new: Callable[[], ActionGuard]) -> None:
        self.new = new
        """Makes a guard."""
        self._unowned: ActionGuard | None = None
        """The guard of turns that belong to no mission; the first of them makes it."""

    def of(self, missions: Sequence[Mission]) -> list[tuple[Mission | None, ActionGuard]]:
        """The guards of missions and of those that they are part of, each with its mission; without missions that of
        what belongs to none."""
        if not missions:
            self._unowned = self._unowned or self.new()
            return [(None, self._unowned)]
        found: list[tuple[Mission | None, ActionGuard]] = []
        for mission in with_parents(missions):
            mission.guard = mission.guard or self.new()
            found.append((mission, mission.guard))
        return found

    def begin_anew(self, missions: Sequence[Mission]) -> None:
        """Forget what missions, those that they are part of, and what belongs to none have done by themselves: an
        operator has said something."""
        self._unowned = None
        for mission in with_parents(missions):
            mission.guard = None
