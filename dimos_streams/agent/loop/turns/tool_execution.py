"""Runs the calls of one answer in their order, and records a result for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.turns.call_runner import CallRunner, answered
from dimos_streams.agent.loop.turns.scheduling import groups, run_in_order
from dimos_streams.agent.loop.turns.turn_state import TurnState
from dimos_streams.agent.missions.end_state import fact_of_result
from dimos_streams.agent.missions.mission import ids, note_call
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.calls import HeardMissions
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.errors import SkillError

_SHOWN = 500
_logger = logging.getLogger(__name__)


class Execution:
    """The calls of one answer of a turn. When it is cancelled, ``break_off`` gives results to those without one."""

    def __init__(self, turn: TurnState, parts: LoopParts, calls: Sequence[AssembledCall]) -> None:
        self._turn = turn
        self._parts = parts
        self._calls = calls
        control = parts.oversight.control
        self._runner = CallRunner(turn, calls, parts.model, parts.toolbox, parts.scope, control)
        self._results: dict[str, CallResult] = {}
        """The results that calls came to, by the model's ids."""
        self._unanswered = {call.call.id: call for call in calls}

    async def run(self) -> list[CallResult]:
        """Run the calls; return their results in the order of the calls."""
        runs = groups(self._calls, lambda call: self._parts.toolbox.concurrent(call.call.name))
        return await run_in_order(runs, self._run_one, self._record, cap=self._parts.model.limits.parallel_calls)

    def break_off(self, why: str) -> None:
        """Record a result for each call that has none: what is known of it, and ``why`` there is no more."""
        for tool_call_id, assembled in tuple(self._unanswered.items()):
            call, known = self._runner.begun.get(tool_call_id), self._results.get(tool_call_id)
            if known is not None:  # it waited for those before it
                result = known
            elif call is None:
                result = CallResult(f"not run: {why}", is_error=True)
            elif call.answered is not None:
                result = answered(call, call.answered)
            else:
                result = CallResult(f"call {call.call_id} was running: {why}", is_error=True, call=call)
            self._record(assembled, result)

    def _record(self, assembled: AssembledCall, result: CallResult) -> None:
        name, call_id = assembled.call.name, result.call.call_id if result.call else ""
        del self._unanswered[assembled.call.id]
        self._note(assembled, result)
        text = self._parts.transcript.results.shorten(result.text, skill=name, is_error=result.is_error)
        self._turn.emit(
            EventKind.RESULT,
            text=text,
            tool_call_id=assembled.call.id,
            skill=name,
            call_id=call_id,
            is_error=result.is_error,
            event=result.event.to_dict() if result.event else None,
            **result.remarks,
            **self._heard(result),
        )
        if result.call is not None:
            self._parts.scope.calls.incoming.recorded(result.call)

    def _note(self, assembled: AssembledCall, result: CallResult) -> None:
        """Note what has become of a call in the missions that it counts for."""
        fact = fact_of_result(
            assembled.call.name,
            result.text,
            result.event,
            is_error=result.is_error,
            began=result.call is not None,
            cancelled=result.cancelled,
            ran=assembled.call.id in self._results,
        )
        note_call(self._turn.failing, fact)

    def _heard(self, result: CallResult) -> HeardMissions:
        """The missions that a failure or a call counts for, as its event has them; empty if it counts for all."""
        failing = ids(mission for mission in self._turn.missions if mission in self._turn.failing)
        counts = result.failed or result.call is not None
        return {"heard": failing} if counts and failing != ids(self._turn.missions) else {}

    async def _run_one(self, assembled: AssembledCall) -> CallResult:
        try:
            result = await self._runner.run(assembled)
        except SkillError as error:
            result = CallResult(str(error), is_error=True)
        except Exception as error:
            error_id = f"{self._turn.id}-{assembled.call.id}"
            _logger.exception("call of %r, %s", assembled.call.name, error_id)
            result = CallResult(internal_error(error_id, error), is_error=True)
        if self._turn.finished:
            raise asyncio.CancelledError
        self._results[assembled.call.id] = result
        self._turn.emit(
            EventKind.CALL_END,
            tool_call_id=assembled.call.id,
            skill=assembled.call.name,
            call_id=result.call.call_id if result.call else "",
            is_error=result.is_error,
            outcome=result.event.outcome if result.event else None,
            text=result.text[:_SHOWN],
        )
        return result
