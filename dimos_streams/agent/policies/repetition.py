"""Notices that a model asks for the same again and again."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import Field

from dimos_streams import clock
from dimos_streams.agent.policies.canonical import canonical, shown
from dimos_streams.common.schemas.frozen_model import FrozenModel

MAX_PERIOD = 4
Action: TypeAlias = Literal["warn", "hint", "stop"]
"""The consequence of repetition: people are informed; the model is, too; or what is watched ends, and what the model
asks for is not run."""
_Batch: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that the model repeats itself."""

    action: Action
    text: str


class RepetitionSettings(FrozenModel):
    """The numbers of repetitions within a turn at which something is done. None means never."""

    warn_at: int | None = Field(default=3, ge=2)
    """The number of repetitions at which operators are informed."""
    hint_at: int | None = Field(default=6, ge=2)
    """The number of repetitions at which the model is informed, too."""
    stop_at: int | None = Field(default=9, ge=2)
    """The number of repetitions at which the turn ends, before the calls run."""
    mission_stop_at: int | None = Field(default=18, ge=2)
    """The number of repetitions over all turns at which a mission ends, its calls with it, if so many come within
    ``mission_within_s``."""
    mission_within_s: float = Field(default=100.0, gt=0)
    """The time in s in which repetitions over all turns count. Slower repetition is the world's pace: going from here
    to there and back for hours is a patrol."""

    def of_mission(self) -> RepetitionSettings:
        """The settings of the guard of a mission, which does nothing but end it."""
        return RepetitionSettings(warn_at=None, hint_at=None, stop_at=self.mission_stop_at)


class RepetitionGuard:
    """Compares each batch of calls with those before it; one guard watches one turn, or a mission.

    A repetition is a batch that equals the one before (the order of arguments, and of calls, is irrelevant), or a
    cycle of two to four batches, A-B-A-B. Batches of nothing but polling skills don't count, neither for nor against;
    in other batches polling calls are ignored. Any other change of an argument begins anew.
    """

    def __init__(self, settings: RepetitionSettings, *, within_s: float = math.inf, watched: str = "turn") -> None:
        """Batches that are older than ``within_s`` seconds are forgotten. ``watched`` is the word for what is
        watched."""
        at: dict[Action, int | None] = {
            "warn": settings.warn_at,
            "hint": settings.hint_at,
            "stop": settings.stop_at,
        }
        self._at = {action: times for action, times in at.items() if times is not None}
        size = MAX_PERIOD * (max(self._at.values(), default=1) + 1)
        self._history: deque[_Batch] = deque(maxlen=size)
        self._times: deque[float] = deque(maxlen=size)
        self._within_s = within_s
        self._advice = {**_ADVICE, "stop": f"; the {watched} was ended"}

    def observe(
        self,
        batch: Sequence[tuple[str, Mapping[str, Any]]],
        exempt: frozenset[str] = frozenset(),
        *,
        at: float | None = None,
    ) -> Alarm | None:
        """Take in a batch that a model asks for, as pairs of name and arguments, before any of it runs; return an
        alarm, or None. ``exempt`` names skills that poll. ``at`` is the time of the batch on the loop's clock, by
        default now; it never goes back."""
        counted = [(skill, arguments) for skill, arguments in batch if skill not in exempt]
        if not counted:
            return None
        self._history.append(tuple(sorted((skill, canonical(arguments)) for skill, arguments in counted)))
        self._times.append(clock.monotonic() if at is None else at)
        while self._times[0] < self._times[-1] - self._within_s:
            self._times.popleft()
            self._history.popleft()
        period, times = self._repeated()
        action = self._action(times)
        if action is None:
            return None
        calls = ", ".join(shown(skill, arguments) for skill, arguments in counted)
        what = f"{calls} was asked for" if period == 1 else f"the same {period} answers, the last one {calls}, came"
        return Alarm(action, f"{what} {times} times in a row{self._advice[action]}")

    def _repeated(self) -> tuple[int, int]:
        """The length of the shortest cycle that ends now and how often it has come; (1, 1) if nothing is repeated."""
        history = self._history
        for period in range(1, MAX_PERIOD + 1):
            same = 0
            while same + period < len(history) and history[-1 - same] == history[-1 - same - period]:
                same += 1
            if same >= period:
                # A cycle counts when it is complete; in between there is nothing new to say.
                return (period, same // period + 1) if same % period == 0 else (1, 1)
        return 1, 1

    def _action(self, times: int) -> Action | None:
        stop_at = self._at.get("stop")
        if stop_at is not None and times >= stop_at:
            return "stop"
        return next((action for action in ("hint", "warn") if self._at.get(action) == times), None)


_ADVICE: dict[Action, str] = {
    "warn": "",
    "hint": ". The outcome will not change: try something else, or tell the operator what is in the way",
}
