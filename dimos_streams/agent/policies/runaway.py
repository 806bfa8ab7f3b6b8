"""Notices a mission that runs away: its model does one thing after the other, turn after turn, on its own account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.missions.mission import ActionGuard, Mission, with_parents
from dimos_streams.agent.policies.repetition import RepetitionGuard, RepetitionSettings

MAX_ACTIONS = "max_actions"
REPETITION = "repetition"


class RunawayGuard:
    """Watches one mission over all its turns. Answers that ask for nothing but polling do not count.

    ``actions`` answers that ask for calls may come one right after the other; ``per_hour`` of them grow back, so a
    mission whose pace is that of the world may last for ever. Repetition counts if it comes quickly. After operators'
    input there is a new guard.
    """

    def __init__(self, settings: RepetitionSettings, actions: int | None, per_hour: float) -> None:
        self._actions = actions
        self._per_hour = per_hour
        self._left = float(actions or 0)
        self._looked_at: float | None = None
        within_s = settings.mission_within_s
        self._repetition = RepetitionGuard(settings.of_mission(), within_s=within_s, watched="mission")

    def observe(
        self,
        batch: Sequence[tuple[str, Mapping[str, Any]]],
        exempt: frozenset[str] = frozenset(),
        *,
        at: float | None = None,
    ) -> tuple[str, str] | None:
        """Take in what an answer asks for. Return the reason for which the mission is to end and a sentence on it, or
        None.

        ``at`` is the time of the answer on the loop's clock, by default now; it never goes back.
        """
        if all(skill in exempt for skill, _ in batch):
            return None
        at = clock.monotonic() if at is None else at
        alarm = self._repetition.observe(batch, exempt, at=at)
        if alarm is not None:
            return REPETITION, alarm.text
        if self._actions is None or self._spend(at):
            return None
        text = (
            f"the model went on by itself too fast: {self._actions} answers that ask for calls, "
            f"and {self._per_hour:g} an hour, are the limit without a word of the operator"
        )
        return MAX_ACTIONS, text

    def _spend(self, at: float) -> bool:
        passed_s = 0.0 if self._looked_at is None else max(0.0, at - self._looked_at)
        grown = passed_s * self._per_hour / 3600
        self._left = min(float(self._actions or 0), self._left + grown) - 1
        self._looked_at = at
        return self._left >= 0


class RunawayGuards:
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
