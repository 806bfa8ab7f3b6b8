"""One turn: the model reacts to messages, answer after answer, until it asks for nothing more or has to stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Collection

from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.loop.turns.ending import Ending, ending_of
from dimos_streams.agent.loop.turns.model_exchange import ModelExchange
from dimos_streams.agent.loop.turns.model_response import ModelAnswer
from dimos_streams.agent.loop.turns.tool_execution import Execution
from dimos_streams.agent.loop.turns.turn_state import TurnState
from dimos_streams.agent.loop.turns.turn_watch import TurnWatch
from dimos_streams.agent.missions.end_reasons import is_about, stopped
from dimos_streams.agent.missions.mission import Mission, all_ended, ids
from dimos_streams.agent.models.tool_call_assembler import AssembledCall
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.missions import StopData
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import is_stray, stray_cancellation

_logger = logging.getLogger(__name__)


class Turn(TurnState):
    """Asks the model, runs its calls, asks again. ``interrupt`` ends it from outside, at once; then ``finish`` makes
    its record whole."""

    def __init__(
        self,
        id: str,
        parts: LoopParts,
        machine: StateMachine,
        missions: tuple[Mission, ...],
        numbers: itertools.count[int],
        heard: Collection[Mission],
    ) -> None:
        """``heard`` are the missions whose input is new to the model."""
        super().__init__(id, missions, heard, parts.transcript.emit)
        self._parts = parts
        self.why_interrupted = ""
        self.interrupted = asyncio.Event()
        self._machine = machine
        self._task: asyncio.Task[Ending] | None = None
        self._exchange = ModelExchange(self, parts.model, parts.transcript, parts.toolbox, numbers)
        self._watch = TurnWatch(self, parts.model, parts.stop_policy, parts.toolbox)
        self._execution: Execution | None = None

    def start(self) -> asyncio.Task[Ending]:
        """Begin the turn; the task returns why it stopped."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"turn {self.id}")
        if self.interruption:
            self._task.cancel()
        return self._task

    def interrupt(self, reason: str, why: str = "") -> None:
        """End the turn: the model's stream is closed and no call begins any more. The first reason stays.

        ``why`` is what the operator said about it, which the model is shown.
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
        self._exchange.break_off(ending)
        if self._execution is not None:
            self._execution.break_off(ending.why_no_result)
            self._execution = None
        text = stopped(ending.reason, ending.why)
        self._parts.transcript.close_unanswered(ids(self.missions), text, ending.reason)
        if ending.note:
            self.emit(EventKind.NOTE, text=ending.note)
        for mission in self.missions:
            heard = mission in self.heard and is_about(ending.about, mission.id)
            mission.end_state.note_turn_end(self.text, ending.reason, ending.note or ending.why, heard=heard)
        data = StopData(reason=ending.reason, note=ending.note, iterations=self.iteration, text=self.text[:500])
        if ending.why:
            data["why"] = ending.why
        if ending.about:
            data["about"] = ending.about
        self.emit(EventKind.STOP, **data)
        self.finished = True

    async def _run(self) -> Ending:
        try:
            while True:
                ending = await self._iterate()
                if ending is not None:
                    return ending
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError):
                if self.interruption or not is_stray(error):
                    raise
                error = stray_cancellation(f"turn {self.id}")
            elif self.finished:
                raise
            _logger.exception("the agent's loop has a bug, turn %s", self.id)
            text = f"{internal_error(self.id, error)}: {redacted(str(error))}"
            self.emit(EventKind.ERROR, text=text, is_error=True)
            return Ending("error", why=text)

    async def _iterate(self) -> Ending | None:
        """Do one iteration; return the turn's ending, or None to go on with another."""
        most = self._parts.model.limits.max_iterations
        if self.iteration >= most:
            return Ending("max_iterations", f"stopped after {most} answers of the model")
        await self._parts.oversight.control.unpaused()
        if all_ended(self.missions):
            return Ending(self.missions[0].ended)
        if over := self._watch.over_budget():  # by a turn before this one, whose last answer asked for nothing
            return over
        self.iteration += 1
        self._machine.go(LoopState.STREAMING)
        answer = await self._exchange.ask()
        if isinstance(answer, Ending):
            return answer
        self.text = answer.text or self.text
        if not answer.calls:
            return ending_of(answer, ignored=bool(self.heard) and self.iteration == 1 and not self.text.strip())
        self._execution = Execution(self, self._parts, answer.calls)
        return self._must_stop(answer.calls) or await self._execute(answer, self._execution)

    def _must_stop(self, asked: tuple[AssembledCall, ...] = ()) -> Ending | None:
        return self._watch.must_stop(self._exchange.spent, asked)

    async def _execute(self, answer: ModelAnswer, execution: Execution) -> Ending | None:
        """Run what an answer asks for; return the turn's ending, or None to go on."""
        self._machine.go(LoopState.EXECUTING)
        hint = self._watch.look_for_repetition(answer)
        if isinstance(hint, Ending):
            return hint
        results = await execution.run()
        self.check_going_on()
        self._execution = None
        too_many_errors = self._watch.note_executed(answer, results)
        if hint:
            self.emit(EventKind.UPDATE, text=hint, skill="agent")
        return too_many_errors or self._must_stop()
