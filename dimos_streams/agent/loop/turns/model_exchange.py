"""Asks the model on behalf of a turn: the request, the answer as it comes, what it costs, and how it fails."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace

from dimos_streams.agent.context.token_estimate import CHARACTERS_PER_TOKEN, TOKENS_PER_PICTURE
from dimos_streams.agent.context.transcript import LoopTranscript
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.loop.turns.ending import Ending
from dimos_streams.agent.loop.turns.model_response import Answering, ModelAnswer, call_fields
from dimos_streams.agent.loop.turns.turn_state import TurnState
from dimos_streams.agent.missions.mission import ids
from dimos_streams.agent.models.protocol import ContextLengthError, ModelError, TokenUsage
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.model_answers import AnswerData
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.common.secrets import redacted
from dimos_streams.operator.messages.agent import Usage as Spent

MAX_SHORTENINGS = 8
"""Maximum number of times that the conversation is shortened for one answer."""
_MAX_WHY = 4000
_logger = logging.getLogger(__name__)


class ModelExchange:
    """Asks the model for a turn, records its answers, and counts what they cost."""

    def __init__(
        self,
        turn: TurnState,
        model: ModelInUse,
        transcript: LoopTranscript,
        toolbox: Toolbox,
        numbers: itertools.count[int],
    ) -> None:
        """``numbers`` make ids for calls without one."""
        self._turn = turn
        self._model = model
        self._transcript = transcript
        self._toolbox = toolbox
        self._numbers = numbers
        self._answering: Answering | None = None
        self.spent = Spent()
        """The usage and cost of this turn."""

    async def ask(self) -> ModelAnswer | Ending:
        """Return one answer of the model, or an ending if it failed; either is recorded, unless the turn was
        interrupted and the model has swallowed its cancellation."""
        self._turn.emit(EventKind.ITERATION_START, iteration=self._turn.iteration)
        # A turn begins with what is true now: a module that was away a moment ago may be back.
        await self._toolbox.catalog.refresh(at_once=self._turn.iteration == 1)
        self._turn.tools = self._toolbox.offered()
        if dropped := self._transcript.conversation.take_dropped():
            text = f"{dropped} of the oldest entries of the conversation were dropped; the record has them"
            self._turn.emit(EventKind.NOTE, text=text)
        try:
            answer = await self._receive()
        except ModelError as error:
            return self._model_failed(str(error))
        except Exception as error:
            _logger.exception("the model has a bug")
            return self._model_failed(f"{type(error).__name__}: {redacted(str(error))}")
        self._turn.check_going_on()
        return self._record(answer)

    def break_off(self, ending: Ending) -> None:
        """Record what there is of an answer that was cut off, if one was."""
        if self._answering is None:
            return
        self._count(self._answering.usage)
        if self._answering.text:
            text = f"{self._answering.text} [{ending.label}]"
            self._turn.emit(EventKind.ANSWER, text=text, finish=ending.reason, tool_calls=[])
        self._answering = None

    async def _receive(self) -> ModelAnswer:
        """Return the model's answer to the conversation, which is shortened as often as it is too long for the model.

        Raises ``ModelError``.
        """
        transcript, model = self._transcript, self._model
        for attempt in itertools.count(1):
            self._turn.stale = False
            request = transcript.request(self._turn.tools)
            missions = ids(self._turn.missions)
            self._answering = Answering(transcript.emit, missions, self._numbers, model.limits)
            try:
                return await self._answering.receive(model.adapter, request)
            except ContextLengthError as error:
                if attempt > MAX_SHORTENINGS or not transcript.conversation.can_be_shortened:
                    raise
                text = "The conversation is too long for the model: half of it is kept from it from now on"
                self._turn.emit(EventKind.SHORTENED, text=f"{text} ({error})", attempt=attempt)
        raise AssertionError("endless")

    def _record(self, answer: ModelAnswer) -> ModelAnswer:
        """Record a whole answer and what it costs. Return it with the ids of the missions that it is about."""
        if self._answering is not None:
            self._count(self._answering.usage)
        self._answering = None
        answer = replace(answer, about=tuple(each.id for each in self._turn.missions if each.input in answer.about))
        data = AnswerData(
            text=answer.text,
            finish=answer.finish,
            why_cut=answer.why_cut,
            tool_calls=[call_fields(call.call) for call in answer.calls],
        )
        if answer.thoughts.text:
            data["thoughts"] = answer.thoughts.text
        if answer.thoughts.details:
            data["thought_details"] = {
                name: list(map(dict, parts)) for name, parts in answer.thoughts.details.items()
            }
        if answer.about:
            data["about"] = answer.about
        self._turn.emit(EventKind.ANSWER, **data)
        return answer

    def _model_failed(self, why: str) -> Ending:
        self._turn.check_going_on()
        text = f"the model failed: {why[:_MAX_WHY]}"
        self._turn.emit(EventKind.ERROR, text=text, is_error=True)
        return Ending("error", why=text)

    def _count(self, usage: TokenUsage) -> None:
        model, limits = self._model, self._model.limits
        cost = model.cost(usage)
        spent = Spent(requests=1, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=cost)
        self.spent += spent
        for mission in self._turn.missions:
            mission.spend(spent)
        self._turn.emit(
            EventKind.USAGE,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost=cost,
            estimated=usage.estimated,
        )
        bounded = limits.max_tokens is not None or limits.max_cost is not None
        if usage.estimated and bounded and not model.estimates_noted:
            model.estimates_noted = True
            each = f"{CHARACTERS_PER_TOKEN} characters each, a picture {TOKENS_PER_PICTURE}"
            text = f"The model reports no usage: tokens are estimated, {each}"
            self._turn.emit(EventKind.NOTE, text=text)
