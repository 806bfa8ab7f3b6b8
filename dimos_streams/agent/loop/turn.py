"""One turn: the model reacts to messages, answer after answer, until it asks for nothing more or has to stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dimos_streams.agent.loop.intake import close
from dimos_streams.agent.loop.model_response import Answer, Answering, call_fields
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.loop.tool_execution import CallResult, Execution
from dimos_streams.agent.missions.end_reasons import of_last_answer, settle
from dimos_streams.agent.missions.limits import over_budget
from dimos_streams.agent.missions.mission import (
    ActionGuard,
    Mission,
    Spent,
    all_ended,
    ids,
    note_failure,
    with_parents,
)
from dimos_streams.agent.missions.stop_conditions import ExecutedCall, Progress, verdict
from dimos_streams.agent.models.protocol import ContextLengthError, ModelError, ModelRequest, ToolSchema, Usage
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.policies.gates.base import Hint, Stop, Warn
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.secrets import redacted

MAX_SHORTENINGS = 8
"""Of the conversation, for one answer."""
LOOPING = "repetition"
INTERRUPTED = "interrupted"
"""The operator had words that could not wait."""
_MAX_WHY = 4000
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn stops."""

    reason: str
    note: str = ""
    """For people, where the reason alone does not say it."""
    why: str = ""
    """The same, where the conversation has it already."""
    ends_missions: bool = False
    """Nothing more may be done for the missions: what they have begun is ended too."""

    @property
    def label(self) -> str:
        """The reason as the model finds it in the conversation, with what the operator said to it."""
        return f"{self.reason}: {self.why}" if self.reason == "aborted" and self.why else self.reason


class Turn:
    """Asks, runs, asks again. ``interrupt`` ends it from outside, at once; then ``finish`` makes its record whole."""

    def __init__(
        self,
        id: str,
        parts: LoopParts,
        machine: StateMachine,
        missions: tuple[Mission, ...],
        numbers: itertools.count[int],
        heard: Collection[Mission] = (),
    ) -> None:
        """``heard`` are the missions whose words are new to the model."""
        self._heard = heard
        self.id = id
        self.parts = parts
        self.missions = missions
        self.iteration = 0
        self.interruption = ""
        self.why_interrupted = ""
        self.interrupted = asyncio.Event()
        self.tools: tuple[ToolSchema, ...] = ()
        self.text = ""
        """The newest words of the model."""
        self.stale = False
        """Whether words were withdrawn since the model was asked."""
        self._machine = machine
        self._numbers = numbers
        self._task: asyncio.Task[Ending] | None = None
        self._spent = Spent()
        self._errors = 0
        self._batch_size = 0
        self._executed: list[ExecutedCall] = []
        self._repetition = parts.new_repetition()
        self._answering: Answering | None = None
        self._execution: Execution | None = None

    @property
    def failing(self) -> Collection[Mission]:
        """Whose calls fail here: those of the missions whose words were heard in this turn, if any were."""
        return self._heard or self.missions

    def emit(self, kind: str, **data: Any) -> None:
        """Log an event of the turn's missions."""
        self.parts.events.emit(kind, ids(self.missions), **data)

    def start(self) -> asyncio.Task[Ending]:
        """Begin; the task gives why it stopped."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"turn {self.id}")
        if self.interruption:
            self._task.cancel()
        return self._task

    def interrupt(self, reason: str, why: str = "") -> None:
        """End it: the model's stream is closed and no call begins any more. The first reason stays.

        ``why`` is what the operator said to it, which the model is told.
        """
        if self.interruption:
            return
        self.interruption = reason
        self.why_interrupted = why
        self.interrupted.set()
        if self._task is not None:
            self._task.cancel()

    def finish(self, ending: Ending) -> None:
        """Complete the record: no call without a result, and nothing to which a later turn would react again."""
        if self._answering is not None:
            self._count(self._answering.usage)
            if self._answering.text:
                text = f"{self._answering.text} [{ending.label}]"
                self.emit(EventKind.ANSWER, text=text, finish=ending.reason, tool_calls=[])
            self._answering = None
        if self._execution is not None:
            self._execution.settle(_why(ending))
            self._execution = None
        if self.parts.conversation.awaits_answer:
            close(self.parts, self.missions, ending.reason, ending.label)
        if ending.note:
            self.emit(EventKind.NOTE, text=ending.note)
        for mission in self.missions:
            mission.text = self.text
            settle(mission, ending.reason, ending.note or ending.why, heard=mission in self._heard)
        self.emit(
            EventKind.STOP,
            reason=ending.reason,
            note=ending.note,
            iterations=self.iteration,
            text=self.text[:500],
            **({"why": ending.why} if ending.why else {}),
        )

    async def _run(self) -> Ending:
        try:
            while True:
                ending = await self._iterate()
                if ending is not None:
                    return ending
        except Exception as error:
            _logger.exception("the agent's loop has a bug")
            text = f"internal error in turn {self.id} ({type(error).__name__}: {redacted(str(error))})"
            self.emit(EventKind.ERROR, text=text, is_error=True)
            return Ending("error", why=text)

    async def _iterate(self) -> Ending | None:
        """One iteration; None to go on with another."""
        settings = self.parts.settings
        if self.iteration >= settings.max_iterations:
            return Ending("max_iterations", f"stopped after {settings.max_iterations} answers of the model")
        await self.parts.control.unpaused()
        if all_ended(self.missions):
            return Ending(self.missions[0].ended)
        self.iteration += 1
        self._machine.go(LoopState.STREAMING)
        answer = await self._ask()
        if isinstance(answer, Ending):
            return answer
        self.text = answer.text or self.text
        if not answer.calls:
            return _ending_of(answer)
        self._execution = Execution(self, answer.calls)
        return self._must_stop(answer.calls) or await self._execute(answer)

    async def _ask(self) -> Answer | Ending:
        """One answer of the model, recorded; an ending if it failed, which is recorded too."""
        parts = self.parts
        self.emit(EventKind.ITERATION_START, iteration=self.iteration)
        # A turn begins with what is true now: a module that was away a moment ago may be back.
        await parts.offers.refresh(at_once=self.iteration == 1)
        self.tools = self._offered_tools()
        if dropped := parts.conversation.take_dropped():
            text = f"{dropped} of the oldest entries of the conversation were dropped; the record has them"
            self.emit(EventKind.NOTE, text=text)
        try:
            answer = await self._receive()
        except ModelError as error:
            return self._model_failed(str(error))
        except Exception as error:
            _logger.exception("the model has a bug")
            return self._model_failed(f"{type(error).__name__}: {redacted(str(error))}")
        if self._answering is not None:
            self._count(self._answering.usage)
        self._answering = None
        self.emit(
            EventKind.ANSWER,
            text=answer.text,
            finish=answer.finish,
            why_cut=answer.why_cut,
            tool_calls=[call_fields(call.call) for call in answer.calls],
        )
        return answer

    async def _receive(self) -> Answer:
        """The model's answer to the conversation, which is shortened as often as it is too long for the model.

        Raises ``ModelError``.
        """
        parts = self.parts
        for attempt in itertools.count(1):
            self.stale = False
            request = ModelRequest(parts.results.mask(parts.conversation.messages()), self.tools)
            self._answering = Answering(parts.events.emit, ids(self.missions), self._numbers, parts.settings)
            try:
                return await self._answering.receive(parts.model, request)
            except ContextLengthError as error:
                if attempt > MAX_SHORTENINGS or not parts.conversation.can_be_shortened:
                    raise
                text = "The conversation is too long for the model: half of it is kept from it from now on"
                self.emit(EventKind.SHORTENED, text=f"{text} ({error})", attempt=attempt)
        raise AssertionError("endless")

    def _model_failed(self, why: str) -> Ending:
        text = f"the model failed: {why[:_MAX_WHY]}"
        self.emit(EventKind.ERROR, text=text, is_error=True)
        return Ending("error", why=text)

    def _offered_tools(self) -> tuple[ToolSchema, ...]:
        parts = self.parts
        schemas = (parts.reviewer.tool(skill) for skill in parts.offers.offered.values() if skill.available)
        return (*(schema for schema in schemas if schema is not None), *parts.tools.schemas())

    def _count(self, usage: Usage) -> None:
        cost = self.parts.cost(usage)
        spent = Spent(requests=1, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=cost)
        self._spent += spent
        for mission in self.missions:
            mission.spend(spent)
        self.emit(
            EventKind.USAGE,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost=cost,
            estimated=usage.estimated,
        )
        settings = self.parts.settings
        bounded = settings.max_tokens is not None or settings.max_cost is not None
        if usage.estimated and bounded and not self.parts.told_of_estimates:
            self.parts.told_of_estimates = True
            text = "The model's server tells no usage: tokens are estimated, four characters each, 1000 for a picture"
            self.emit(EventKind.NOTE, text=text)

    def _must_stop(self, asked: tuple[AssembledCall, ...] = ()) -> Ending | None:
        """Whether budgets or conditions end the missions here."""
        budget = over_budget(self.missions, self.parts.settings)
        if budget is not None:
            return Ending(budget, "the mission has used all it may", ends_missions=True)
        reason = verdict(self.parts.settings.stop_conditions, self._progress(asked))
        return Ending(reason, ends_missions=True) if reason else None

    def _progress(self, asked: tuple[AssembledCall, ...]) -> Progress:
        return Progress(
            iteration=self.iteration,
            response=self.text,
            asked=tuple(call.call.name for call in asked),
            spent=self._spent,
            executed=tuple(self._executed),
            last_results=tuple(self._last_batch()),
            robot=self.parts.robot(),
        )

    def _last_batch(self) -> list[ExecutedCall]:
        return self._executed[-self._batch_size :] if self._batch_size else []

    async def _execute(self, answer: Answer) -> Ending | None:
        """Run what an answer asks for; None to go on."""
        assert self._execution is not None
        self._machine.go(LoopState.EXECUTING)
        hint = self._look_for_repetition(answer)
        if isinstance(hint, Ending):
            return hint
        results = await self._execution.run()
        self._execution = None
        self._note_executed(answer, results)
        if hint:
            self.emit(EventKind.UPDATE, text=hint, skill="agent")
        return self._too_many_errors(results) or self._must_stop()

    def _look_for_repetition(self, answer: Answer) -> Ending | str:
        """What to tell the model, or an ending."""
        batch = self.parts.meant((call.call.name, call.arguments) for call in answer.calls if call.damage is None)
        exempt = self.parts.polling()
        if batch and (ending := self._runs_away(batch, exempt)):
            return ending
        alarm = self._repetition.observe(batch, exempt) if batch else None
        if isinstance(alarm, Stop):
            return Ending(LOOPING, alarm.text)
        if isinstance(alarm, Warn | Hint):
            self.emit(EventKind.NOTE, text=alarm.text)
        return alarm.text if isinstance(alarm, Hint) else ""

    def _runs_away(self, batch: Sequence[tuple[str, Mapping[str, Any]]], exempt: frozenset[str]) -> Ending | None:
        """Whether a mission of the turn, or one that it is part of, goes on and on by itself."""
        found = [guard.observe(batch, exempt) for guard in self._guards()]
        reason = next((each for each in found if each is not None), None)
        return Ending(reason[0], reason[1], ends_missions=True) if reason else None

    def _guards(self) -> list[ActionGuard]:
        guards: list[ActionGuard] = []
        for mission in with_parents(self.missions):
            mission.guard = mission.guard or self.parts.new_guard()
            guards.append(mission.guard)
        if not guards:
            self.parts.unowned = self.parts.unowned or self.parts.new_guard()
            guards.append(self.parts.unowned)
        return guards

    def _note_executed(self, answer: Answer, results: list[CallResult]) -> None:
        self._batch_size = len(results)
        for assembled, result in zip(answer.calls, results, strict=True):
            if result.failed:
                note_failure(self.failing, assembled.call.name, result.text)
        self._executed += [
            ExecutedCall(
                skill=assembled.call.name, arguments=assembled.arguments, text=result.text, is_error=result.is_error
            )
            for assembled, result in zip(answer.calls, results, strict=True)
        ]

    def _too_many_errors(self, results: list[CallResult]) -> Ending | None:
        if not all(result.is_error for result in results):
            self._errors = 0
        elif all(result.charged for result in results):
            self._errors += 1
        if self._errors < self.parts.settings.max_consecutive_errors:
            return None
        return Ending("consecutive_errors", f"all calls of {self._errors} answers in a row have failed")


def _ending_of(answer: Answer) -> Ending:
    """How a turn ends with an answer that asks for nothing."""
    reason, note = of_last_answer(answer.finish)
    return Ending(reason, note, why=answer.why_cut)


def _why(ending: Ending) -> str:
    words = {
        "cancelled": "the operator has withdrawn this",
        "aborted": "the operator has aborted the mission",
        INTERRUPTED: "the operator has something more urgent to say; calls that run go on",
    }
    if ending.reason == "aborted" and ending.why:
        return f"{words['aborted']}: {ending.why}"
    return words.get(ending.reason, f"{ending.reason}{f' ({ending.note})' if ending.note else ''}")
