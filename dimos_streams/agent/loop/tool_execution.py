"""Runs the calls of one answer: through the gates, in their order, each with a result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.context.render import answer_text, failed
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.replacing import Replacement
from dimos_streams.agent.loop.scheduling import groups, run_in_order
from dimos_streams.agent.missions.end_state import fact_of_result
from dimos_streams.agent.missions.mission import Mission, all_ended, going_on, ids, note_call
from dimos_streams.agent.models.protocol import STALE, ToolSchema
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.begun_calls import begun_call, whose_list
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.errors import CallInDoubtError, CallRejectedError, SkillError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import OfferedSkill

_SHOWN = 500
_logger = logging.getLogger(__name__)


class AskingTurn(Protocol):
    """The turn whose model has asked for calls, as what runs them sees it."""

    @property
    def id(self) -> str: ...

    @property
    def parts(self) -> LoopParts: ...

    @property
    def missions(self) -> tuple[Mission, ...]: ...

    @property
    def failing(self) -> Collection[Mission]:
        """The missions whose calls fail here."""

    @property
    def iteration(self) -> int: ...

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """The tools that the model was offered last."""

    @property
    def stale(self) -> bool:
        """True if input was withdrawn since the model was asked."""

    @property
    def finished(self) -> bool:
        """True once its record is whole: nothing is added any more."""

    def emit(self, kind: str, **data: Any) -> None:
        """Log an event of the turn's missions."""

    def check_going_on(self) -> None:
        """Raise ``CancelledError`` if the turn was interrupted."""


class Execution:
    """The calls of one answer of a turn. When it is cancelled, ``break_off`` gives results to those without one."""

    def __init__(self, turn: AskingTurn, calls: Sequence[AssembledCall]) -> None:
        self._turn = turn
        self._parts = turn.parts
        self._calls = calls
        most = turn.parts.model.limits.calls_per_answer
        self._surplus = frozenset(call.call.id for call in calls[most:]) if most is not None else frozenset()
        self._begun: dict[str, OpenCall] = {}
        self._results: dict[str, CallResult] = {}
        """The results that calls came to, by the model's ids."""
        self._unanswered = {call.call.id: call for call in calls}
        self._in_motion: OpenCall | None = None

    async def run(self) -> list[CallResult]:
        """Run the calls; return their results in the order of the calls."""
        runs = groups(self._calls, lambda call: self._parts.toolbox.concurrent(call.call.name))
        return await run_in_order(runs, self._run_one, self._record, cap=self._parts.model.limits.parallel_calls)

    def break_off(self, why: str) -> None:
        """Record a result for each call that has none: what is known of it, and ``why`` there is no more."""
        for tool_call_id, assembled in tuple(self._unanswered.items()):
            call, known = self._begun.get(tool_call_id), self._results.get(tool_call_id)
            if known is not None:  # it waited for those before it
                result = known
            elif call is None:
                result = CallResult(f"not run: {why}", is_error=True)
            elif call.answered is not None:
                result = self._answered(call, call.answered)
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
            **result.rare_fields,
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

    def _heard(self, result: CallResult) -> dict[str, tuple[str, ...]]:
        """The missions that a failure or a call counts for, as its event has them; empty if it counts for all."""
        failing = ids(mission for mission in self._turn.missions if mission in self._turn.failing)
        counts = result.failed or result.call is not None
        return {"heard": failing} if counts and failing != ids(self._turn.missions) else {}

    async def _run_one(self, assembled: AssembledCall) -> CallResult:
        try:
            result = await self._result_of(assembled)
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

    async def _result_of(self, assembled: AssembledCall) -> CallResult:
        if assembled.damage is not None:
            return CallResult(assembled.problem, is_error=True)
        if all_ended(self._turn.missions):
            return CallResult("not run: the operator has withdrawn this", is_error=True)
        if self._turn.stale:
            return CallResult(STALE, is_error=True, charged=False)
        if self._in_motion is not None:
            moving = self._in_motion
            text = f"not run: {moving.skill} (call {moving.call_id}), asked for before it, has not answered yet"
            return CallResult(text, is_error=True, charged=False)
        if assembled.call.id in self._surplus:
            most = self._parts.model.limits.calls_per_answer
            text = f"not run: an answer may ask for {most} calls at most; ask for others when these are done"
            return CallResult(text, is_error=True, charged=False)
        if assembled.call.name in self._parts.toolbox.local:
            return await self._run_tool(assembled)
        return await self._run_skill(assembled)

    async def _run_tool(self, assembled: AssembledCall) -> CallResult:
        name, call = assembled.call.name, assembled.call
        missions = ids(going_on(self._turn.missions))
        await self._parts.oversight.control.permit_call(name, assembled.arguments, call.id, missions).wait()
        self._turn.check_going_on()
        if self._turn.stale:
            return CallResult(STALE, is_error=True, charged=False)
        self._emit_run(assembled.call.id, name, assembled.arguments)
        return await self._parts.toolbox.local.run(
            name, assembled.arguments, going_on(self._turn.missions), tool_call_id=call.id
        )

    async def _run_skill(self, assembled: AssembledCall) -> CallResult:
        tools = (tool.name for tool in self._turn.tools)
        skill = await self._parts.toolbox.catalog.find(assembled.call.name, known=tools)
        request = CallRequest(
            skill=skill,
            arguments=assembled.arguments,
            missions=ids(going_on(self._turn.missions)),
            tool_call_id=assembled.call.id,
            iteration=self._turn.iteration,
        )
        verdict = await self._parts.toolbox.reviewer.review(request)
        if isinstance(verdict, Refuse):
            return CallResult(verdict.text, is_error=True, charged=verdict.charged)
        call = await self._start(assembled.call.id, skill, verdict)
        if isinstance(call, Refuse):
            return CallResult(call.text, is_error=True, charged=call.charged)
        event = await call.answer(self._parts.model.limits.answer_timeout_s)
        if event is not None:
            return self._answered(call, event, verdict.note)
        if skill.motion:
            self._in_motion = call
        text = (
            f"No answer within {self._parts.model.limits.answer_timeout_s:g} s. "
            f"Call {call.call_id} is still running; what it says will be reported."
        )
        return CallResult(text, call=call, note=verdict.note)

    async def _start(self, tool_call_id: str, skill: OfferedSkill, allowed: Allow) -> OpenCall | Refuse:
        """Begin an allowed call; return it, or the refusal."""
        try:
            call = await self._begin(tool_call_id, skill, allowed)
        except CallInDoubtError:
            raise  # it may have begun: what allowed it is used up
        except BaseException:
            allowed.give_back()
            raise
        if isinstance(call, Refuse):
            allowed.give_back()
            return call
        self._begun[tool_call_id] = call
        self._note_open(tool_call_id, skill, allowed.arguments, call.call_id)
        return call

    def _note_open(self, tool_call_id: str, skill: OfferedSkill, arguments: Mapping[str, Any], call_id: str) -> None:
        self._turn.emit(
            EventKind.CALL_OPEN,
            **begun_call(skill.name, skill, arguments, call_id=call_id, tool_call_id=tool_call_id),
            **whose_list(self._parts.toolbox.reviewer.agents),
        )

    async def _begin(self, tool_call_id: str, skill: OfferedSkill, allowed: Allow) -> OpenCall | Refuse:
        """Begin a call as soon as nothing is in its way that it may replace. Nothing else runs between the last look
        at what the operator has set and at the world, and the call."""
        parts = self._parts
        replacement = Replacement(parts.scope, skill, allowed.arguments, allowed.on_duplicate)
        asked = False
        while True:
            refusal = await allowed.last_look()
            self._turn.check_going_on()
            refusal = Refuse(STALE, charged=False) if self._turn.stale else refusal
            if refusal is not None:
                return refusal
            if not asked:
                self._emit_run(tool_call_id, skill.name, allowed.arguments)
                asked = True
            try:
                return await parts.scope.calls.start(
                    skill.name,
                    allowed.arguments,
                    going_on(self._turn.missions),
                    on_duplicate=replacement.on_duplicate,
                    deliver=parts.scope.deliver,
                    reviewer=parts.toolbox.reviewer,
                    time_limit_s=parts.model.limits.call_timeout_s,
                    on_late=partial(self._note_open, tool_call_id, skill, allowed.arguments),
                )
            except CallRejectedError as error:
                await replacement.make_way(error)

    def _emit_run(self, tool_call_id: str, skill: str, arguments: object) -> None:
        whose = whose_list(self._parts.toolbox.reviewer.agents)
        self._turn.emit(EventKind.CALL_RUN, tool_call_id=tool_call_id, skill=skill, arguments=arguments, **whose)

    def _answered(self, call: OpenCall, event: ToolEvent, note: str = "") -> CallResult:
        return CallResult(answer_text(event), failed(event), call, event, note=note)
