"""One answer of the model: received piece by piece, reported as it comes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dimos_streams import clock
from dimos_streams.agent.context.token_estimate import estimated_usage
from dimos_streams.agent.missions.end_reasons import of_model
from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.models.protocol import (
    UNFINISHED,
    AskedAgain,
    Cut,
    Finish,
    Model,
    ModelDelta,
    ModelRequest,
    ReasoningDelta,
    ReasoningDetails,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
)
from dimos_streams.agent.models.thoughts import NO_THOUGHTS, GatheredThoughts, Thoughts
from dimos_streams.agent.models.tool_call_assembler import MAX_CALLS, AssembledCall, ToolCallAssembler
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.record.event_data.base import ToolCallData
from dimos_streams.client.iterators import closing
from dimos_streams.common.readable.surrogates import TextJoiner, well_formed

CUT = "cut"
CAPPED = "too_long"
"""The finish reason of an answer that was longer than it may be; the rest was not read."""
_MAX_REASON, _MAX_WHY = 100, 500
"""Maximum lengths of what a model says of the end of its answer, in characters."""
CONTENT_PERIOD_S = 0.1
"""The shortest time in s between two events of text: pieces of it are reported together."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer of the model, put together. ``finish`` is ``"cut"`` if the stream ended without a reason."""

    text: str
    calls: tuple[AssembledCall, ...]
    finish: str
    why_cut: str = ""
    thoughts: Thoughts = NO_THOUGHTS
    about: tuple[str, ...] = ()
    """The inputs that ``finish`` is about, as the model had them, or their missions' ids once ``ModelExchange`` has
    looked them up; empty if it is about all of them."""


class Answering:
    """Receives one answer. If that is cancelled, what there is of it stays in ``text`` and ``usage``."""

    def __init__(
        self,
        emit: Emit,
        missions: tuple[str, ...],
        call_numbers: itertools.count[int],
        limits: LoopLimits | None = None,
    ) -> None:
        """``call_numbers`` make ids for calls without one."""
        self._emit = emit
        limits = limits or LoopLimits()
        self._limits = {
            "text": limits.answer_characters,
            "reasoning": limits.reasoning_characters,
            "arguments": limits.argument_characters,
        }
        self._lengths = dict.fromkeys(self._limits, 0)
        self._request: ModelRequest | None = None
        self._missions = missions
        self._call_numbers = call_numbers
        self._answer, self._thoughts = TextJoiner(), TextJoiner()
        self._gathered = GatheredThoughts()
        self._pieces: list[str] = []
        self._untold: list[str] = []
        self._reported_at = -CONTENT_PERIOD_S
        self._reasoning = False
        self._announced = 0
        self._finish: str | None = None
        self._about: tuple[str, ...] = ()
        self._why_cut = ""
        self._usage: TokenUsage | None = None
        self._spent = TokenUsage()
        """The usage of the attempts that have broken off."""

    @property
    def text(self) -> str:
        """The text that has come so far."""
        return "".join(self._pieces)

    @property
    def usage(self) -> TokenUsage:
        """The usage of all attempts."""
        return self._spent + self._usage_of_attempt()

    def _usage_of_attempt(self) -> TokenUsage:
        """The usage that is reported in this attempt, or an estimate if something has come and none is."""
        if self._usage is not None:
            return self._usage
        received = sum(self._lengths.values())
        return estimated_usage(self._request, received) if self._request and received else TokenUsage()

    async def receive(self, model: Model, request: ModelRequest) -> ModelAnswer:
        """Return the answer to a request; if it is longer than it may be, its beginning. Raises ``ModelError``."""
        self._request = request
        assembler = ToolCallAssembler(tool.name for tool in request.tools)
        async with closing(model.stream(request)) as stream:
            async for delta in stream:
                self._take_delta(delta, assembler)
                if self._finish == CAPPED:
                    break
        self._hear(self._thoughts.rest(), reasoning=True)
        self._hear(self._answer.rest(), reasoning=False)
        self._report_text()
        finish = self._finish
        calls = assembler.finish(
            complete=finish is not None and finish not in UNFINISHED,
            limited=finish in ("length", CAPPED),
            new_id=lambda: f"made_{next(self._call_numbers)}",
        )
        self._report_calls(calls)
        text = f"{self.text} [cut off: {self._why_cut}]".strip() if finish == CAPPED else self.text
        return ModelAnswer(text, calls, finish or CUT, self._why_cut, self._gathered.kept, self._about)

    def _report_calls(self, calls: Sequence[AssembledCall]) -> None:
        for call in calls[self._announced :]:
            self._emit(EventKind.CALL_START, self._missions, skill=call.call.name)
        for call in calls:
            self._emit(
                EventKind.CALL_COMPLETE,
                self._missions,
                tool_call_id=call.call.id,
                skill=call.call.name,
                arguments=call.arguments if call.damage is None else call.call.arguments[:500],
                damage=call.damage,
            )

    def _take_delta(self, delta: ModelDelta, assembler: ToolCallAssembler) -> None:
        if isinstance(delta, TextDelta):
            self._hear(self._answer.add(self._capped(delta.text, "text")), reasoning=False)
        elif isinstance(delta, ReasoningDelta):
            self._hear(self._thoughts.add(self._capped(delta.text, "reasoning")), reasoning=True)
        elif isinstance(delta, ReasoningDetails):
            self._gathered.add_details(delta.field, delta.parts)
        elif isinstance(delta, ToolCallDelta):
            self._report_text()
            name = self._capped(delta.name, "arguments")
            assembler.add(replace(delta, name=name, arguments=self._capped(delta.arguments, "arguments")))
            if assembler.full:
                self._finish, self._why_cut = CAPPED, f"more than the {MAX_CALLS - 1} calls that are read"
            for name in assembler.newly_begun():
                self._emit(EventKind.CALL_START, self._missions, skill=name)
                self._announced += 1
        elif isinstance(delta, TokenUsage):
            self._usage = delta
        elif isinstance(delta, Finish):
            self._finish, self._about = of_model(well_formed(delta.reason)[:_MAX_REASON]), delta.about
        elif isinstance(delta, AskedAgain):
            self._begin_anew()
        elif isinstance(delta, Cut):
            self._why_cut = well_formed(delta.reason)[:_MAX_WHY]

    def _begin_anew(self) -> None:
        """Keep of an attempt that has broken off what it has spent: what it thought has led to no answer."""
        self._hear(self._thoughts.rest(), reasoning=True)
        self._spent, self._usage = self.usage, None
        self._lengths = dict.fromkeys(self._limits, 0)
        self._gathered = GatheredThoughts()

    def _capped(self, piece: str, of: str) -> str:
        """Return as much of a piece as there is room for; if that is not all of it, the answer ends here."""
        limit = self._limits[of]
        kept = piece[: limit - self._lengths[of]]
        self._lengths[of] += len(kept)
        if len(kept) < len(piece):
            self._finish = CAPPED
            self._why_cut = f"more {of} than the {limit} characters that are read"
        return kept

    def _hear(self, text: str, *, reasoning: bool) -> None:
        if reasoning is not self._reasoning:
            self._report_text()
            self._reasoning = reasoning
        if reasoning:
            self._gathered.add(text)
        else:
            self._pieces.append(text)
        self._untold.append(text)
        if clock.monotonic() - self._reported_at >= CONTENT_PERIOD_S:
            self._report_text()

    def _report_text(self) -> None:
        text = "".join(self._untold)
        self._untold.clear()
        if not text:
            return
        self._reported_at = clock.monotonic()
        if self._reasoning:
            self._emit(EventKind.CONTENT, self._missions, text=text, reasoning=True)
        else:
            self._emit(EventKind.CONTENT, self._missions, text=text)


def call_fields(call: ToolCall) -> ToolCallData:
    """Return a call as the event of the answer shows it."""
    fields = ToolCallData(id=call.id, name=call.name, arguments=call.arguments)
    if call.extra:
        fields["extra"] = dict(call.extra)
    return fields
