"""Runs the calls of one answer, each by itself: through the gates, in their order, to its first answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.calls.open_call import CallContext, OpenCall
from dimos_streams.agent.context.render import answer_text, failed
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.loop.turns.replacing import Replacement
from dimos_streams.agent.loop.turns.turn_state import TurnState
from dimos_streams.agent.missions.mission import all_ended, going_on, ids
from dimos_streams.agent.models.protocol import STALE
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.begun_calls import begun_call
from dimos_streams.agent.record.event_data.calls import CallRunData
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.errors import CallInDoubtError, CallRejectedError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import OfferedSkill


class CallRunner:
    """Runs the calls of one answer of a turn, one by one or side by side, as it is asked to."""

    def __init__(
        self,
        turn: TurnState,
        calls: Sequence[AssembledCall],
        model: ModelInUse,
        toolbox: Toolbox,
        scope: CallScope,
        control: Control,
    ) -> None:
        """``calls`` are all calls of the answer, in its order."""
        self._turn = turn
        self._model = model
        self._toolbox = toolbox
        self._scope = scope
        self._control = control
        most = model.limits.calls_per_answer
        self._surplus = frozenset(call.call.id for call in calls[most:]) if most is not None else frozenset()
        self.begun: dict[str, OpenCall] = {}
        """The calls of skills that have begun, by the model's ids."""
        self._in_motion: OpenCall | None = None
        """A call that moves the robot and has not answered in time: none behind it begins."""

    async def run(self, assembled: AssembledCall) -> CallResult:
        """Run a call, and return its result. Raises ``SkillError`` if it is refused or has not begun."""
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
            most = self._model.limits.calls_per_answer
            text = f"not run: an answer may ask for {most} calls at most; ask for others when these are done"
            return CallResult(text, is_error=True, charged=False)
        if assembled.call.name in self._toolbox.local:
            return await self._run_tool(assembled)
        return await self._run_skill(assembled)

    async def _run_tool(self, assembled: AssembledCall) -> CallResult:
        name, call = assembled.call.name, assembled.call
        missions = ids(going_on(self._turn.missions))
        await self._control.permit(name, assembled.arguments, call.id, missions).wait()
        self._turn.check_going_on()
        if self._turn.stale:
            return CallResult(STALE, is_error=True, charged=False)
        self._emit_run(assembled.call.id, name, assembled.arguments)
        return await self._toolbox.local.run(
            name, assembled.arguments, going_on(self._turn.missions), tool_call_id=call.id
        )

    async def _run_skill(self, assembled: AssembledCall) -> CallResult:
        tools = (tool.name for tool in self._turn.tools)
        skill = await self._toolbox.catalog.find(assembled.call.name, known=tools)
        request = CallRequest(
            skill=skill,
            arguments=assembled.arguments,
            missions=ids(going_on(self._turn.missions)),
            tool_call_id=assembled.call.id,
            iteration=self._turn.iteration,
        )
        verdict = await self._toolbox.reviewer.review(request)
        if isinstance(verdict, Refuse):
            return CallResult(verdict.text, is_error=True, charged=verdict.charged)
        call = await self._start(assembled.call.id, skill, verdict)
        if isinstance(call, Refuse):
            return CallResult(call.text, is_error=True, charged=call.charged)
        event = await call.answer(self._model.limits.answer_timeout_s)
        if event is not None:
            return answered(call, event, verdict.note)
        if skill.motion:
            self._in_motion = call
        text = (
            f"No answer within {self._model.limits.answer_timeout_s:g} s. "
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
        self.begun[tool_call_id] = call
        self._note_open(tool_call_id, skill, allowed.arguments, call.call_id)
        return call

    def _note_open(self, tool_call_id: str, skill: OfferedSkill, arguments: Mapping[str, Any], call_id: str) -> None:
        agents = self._toolbox.reviewer.agents
        begun = begun_call(skill.name, skill, arguments, call_id=call_id, tool_call_id=tool_call_id, agents=agents)
        self._turn.emit(EventKind.CALL_OPEN, **begun)

    async def _begin(self, tool_call_id: str, skill: OfferedSkill, allowed: Allow) -> OpenCall | Refuse:
        """Begin a call as soon as nothing is in its way that it may replace. Nothing else runs between the last look
        at what the operator has set and at the world, and the call."""
        replacement = Replacement(self._scope, skill, allowed.arguments, allowed.on_duplicate)
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
                return await self._scope.calls.start(
                    skill.name,
                    allowed.arguments,
                    CallContext(going_on(self._turn.missions), self._scope.deliver, self._toolbox.reviewer),
                    on_duplicate=replacement.on_duplicate,
                    time_limit_s=self._model.limits.call_timeout_s,
                    on_late=partial(self._note_open, tool_call_id, skill, allowed.arguments),
                    stands=lambda: allowed.stands and not self._turn.stale,
                )
            except CallRejectedError as error:
                await replacement.make_way(error)

    def _emit_run(self, tool_call_id: str, skill: str, arguments: Mapping[str, Any]) -> None:
        data = CallRunData(tool_call_id=tool_call_id, skill=skill, arguments=dict(arguments))
        if agents := self._toolbox.reviewer.agents:
            data["agents"] = list(agents)
        self._turn.emit(EventKind.CALL_RUN, **data)


def answered(call: OpenCall, event: ToolEvent, note: str = "") -> CallResult:
    """The result of a call that an event has answered."""
    return CallResult(answer_text(event), failed(event), call, event, note=note)
