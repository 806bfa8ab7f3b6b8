"""Watches a turn: budgets, stop conditions, errors in a row, repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.loop.turns.ending import Ending
from dimos_streams.agent.loop.turns.model_response import ModelAnswer
from dimos_streams.agent.loop.turns.turn_state import TurnState
from dimos_streams.agent.missions.budget import over_budget
from dimos_streams.agent.missions.mission import Mission, going_on, with_parents
from dimos_streams.agent.missions.stop_conditions import ExecutedCall, Progress, verdict
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.policies.runaway import REPETITION
from dimos_streams.agent.policies.stop_policy import StopPolicy
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.operator.messages.agent import Usage


class TurnWatch:
    """Sees what a turn asks for and what comes of it, and says when it has to stop."""

    def __init__(self, turn: TurnState, model: ModelInUse, stop_policy: StopPolicy, toolbox: Toolbox) -> None:
        self._turn = turn
        self._model = model
        self._stop_policy = stop_policy
        self._toolbox = toolbox
        self._errors = 0
        self._batch_size = 0
        self._executed: list[ExecutedCall] = []
        self._repetition = stop_policy.new_repetition()

    def must_stop(self, spent: Usage, asked: Sequence[AssembledCall]) -> Ending | None:
        """Return the ending if budgets or conditions end the missions here, or None if they may go on.

        ``spent`` is what the turn has used, ``asked`` what is still to be run.
        """
        over = self.over_budget()
        if over is not None:
            return over
        progress = Progress(
            iteration=self._turn.iteration,
            response=self._turn.text,
            asked=tuple(call.call.name for call in asked),
            spent=spent,
            executed=tuple(self._executed),
            last_results=tuple(self._executed[-self._batch_size :] if self._batch_size else ()),
            robot=self._stop_policy.robot(),
        )
        reason = verdict(self._stop_policy.conditions, progress)
        return Ending(reason, ends_missions=True) if reason else None

    def over_budget(self) -> Ending | None:
        """Return the ending if the missions have used more than they may, or None. Of several only those end that
        have: for the others the turn goes on."""
        while over := over_budget(going_on(self._turn.missions), self._model.limits):
            mission, budget = over
            if ending := self._end(mission, budget, "the mission has used all it may"):
                return ending
        return None

    def look_for_repetition(self, answer: ModelAnswer) -> Ending | str:
        """Return a hint for the model, which may be empty, or an ending."""
        batch = self._toolbox.meant((call.call.name, call.arguments) for call in answer.calls if call.damage is None)
        exempt = self._toolbox.polling()
        if batch and (ending := self._runs_away(batch, exempt)):
            return ending
        alarm = self._repetition.observe(batch, exempt) if batch else None
        if alarm is None:
            return ""
        if alarm.action == "stop":
            return Ending(REPETITION, alarm.text)
        self._turn.emit(EventKind.NOTE, text=alarm.text)
        return alarm.text if alarm.action == "hint" else ""

    def note_executed(self, answer: ModelAnswer, results: Sequence[CallResult]) -> Ending | None:
        """Take in what became of an answer's calls; return an ending if there are too many failures in a row, or
        None."""
        self._batch_size = len(results)
        for assembled, result in zip(answer.calls, results, strict=True):
            executed = ExecutedCall(
                skill=assembled.call.name,
                arguments=assembled.arguments,
                text=result.text,
                is_error=result.is_error,
            )
            self._executed.append(executed)
        return self._too_many_errors(results)

    def _end(self, mission: Mission, reason: str, why: str) -> Ending | None:
        """End a mission. Return the ending of the turn, or None if it is also that of others and goes on for them."""
        if all(mission in with_parents([each]) for each in going_on(self._turn.missions)):
            return Ending(reason, why, ends_missions=True, outermost=mission)
        mission.end(reason, why)
        return None

    def _runs_away(self, batch: Sequence[tuple[str, Mapping[str, Any]]], exempt: frozenset[str]) -> Ending | None:
        """End each mission of the turn that goes on and on by itself, or that is part of one that does. Return the
        ending of the turn, or None if there is no such mission, or others have a part in it."""
        missions = going_on(self._turn.missions)
        if self._turn.missions and not missions:
            return None
        guards = self._stop_policy.guards.of(missions)
        found = [(mission, guard.observe(batch, exempt)) for mission, guard in guards]
        for mission, alarm in found:
            if alarm is None:
                continue
            reason, why = alarm
            ending = Ending(reason, why, ends_missions=True) if mission is None else self._end(mission, reason, why)
            if ending is not None:
                return ending
        return None

    def _too_many_errors(self, results: Sequence[CallResult]) -> Ending | None:
        if not all(result.is_error for result in results):
            self._errors = 0
        elif all(result.charged for result in results):
            self._errors += 1
        if self._errors < self._model.limits.max_consecutive_errors:
            return None
        return Ending("consecutive_errors", f"all calls of {self._errors} answers in a row have failed")
