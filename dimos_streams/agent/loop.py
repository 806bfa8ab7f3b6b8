"""The loop: waits for messages, asks the model, runs the calls it asks for, until it asks for none."""

from __future__ import annotations

import enum
import itertools
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dimos_streams.agent.assembly import AssembledCall, ToolCallAssembler
from dimos_streams.agent.calls import CallManager, OpenCall
from dimos_streams.agent.conversation import Conversation
from dimos_streams.agent.iterators import closing
from dimos_streams.agent.missions import Mission
from dimos_streams.agent.models.base import (
    Finish,
    Model,
    ModelDelta,
    ModelError,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
    ToolSchema,
)
from dimos_streams.agent.queue import MessageQueue, OperatorWords, QueueItem
from dimos_streams.agent.telling import answer_text, failed, news_text
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway

_logger = logging.getLogger(__name__)

CUT = "cut"


class LoopState(enum.StrEnum):
    """What the loop does at the moment."""

    IDLE = "idle"
    STREAMING = "streaming"
    EXECUTING = "executing"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Bounds of a turn."""

    max_iterations: int = 20
    """Answers of the model in one turn."""
    answer_timeout_s: float = 10.0
    """For a call's first update or close; after it the model is told that the call goes on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model, put together. ``finish`` is ``"cut"`` if the stream ended without a reason."""

    text: str
    calls: tuple[AssembledCall, ...]
    finish: str


@dataclass(frozen=True, slots=True)
class CallResult:
    """What the model is told about one call that it asked for."""

    text: str
    is_error: bool = False
    call_id: str = ""
    event: ToolEvent | None = None


class AgentLoop:
    """idle → (take all that waits) → streaming → executing → streaming → … → idle.

    All messages that wait when the loop is idle become one turn; what comes meanwhile waits. Progress goes into the
    record and causes no turn. A turn ends with a reason: ``completed``, ``max_iterations``, ``error`` (the model
    failed; an entry says how), ``cancelled`` (the operator withdrew it), or another finish reason of the model.
    """

    def __init__(
        self,
        *,
        model: Model,
        gateway: SkillGateway,
        calls: CallManager,
        queue: MessageQueue,
        conversation: Conversation,
        settings: LoopSettings,
        module: str = "",
    ) -> None:
        """``module`` is the agent's own, whose skills are not offered to its model."""
        self.state = LoopState.IDLE
        self._model = model
        self._gateway = gateway
        self._calls = calls
        self._queue = queue
        self._conversation = conversation
        self._settings = settings
        self._module = module
        self._tools: tuple[ToolSchema, ...] = ()
        self._call_numbers = itertools.count(1)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.turn(await self._queue.take())

    async def turn(self, items: Sequence[QueueItem]) -> None:
        """Take messages into the record and, unless all are progress, let the model react to them."""
        missions = tuple({mission.id: mission for item in items for mission in item.missions}.values())
        for item in items:
            self._record(item)
        try:
            if any(isinstance(item, OperatorWords) or item.wants_turn for item in items):
                await self._react(missions)
        finally:
            self.state = LoopState.IDLE
            for item in items:
                for mission in item.missions:
                    mission.release()

    def _record(self, item: QueueItem) -> None:
        missions = _ids(item.missions)
        if isinstance(item, OperatorWords):
            self._conversation.add("operator", item.text, missions=missions)
            return
        event = item.event
        text = news_text(event) if item.wants_turn else event.text
        self._conversation.add(
            "event" if item.wants_turn else "progress",
            text,
            skill=event.skill,
            call_id=event.call_id,
            event=event,
            is_error=failed(event),
            missions=missions,
        )

    async def _react(self, missions: tuple[Mission, ...]) -> None:
        reason, text = "max_iterations", ""
        for _ in range(self._settings.max_iterations):
            if _withdrawn(missions):
                reason = "cancelled"
                break
            answer = await self._ask(missions)
            if answer is None:
                reason = "error"
                break
            text = answer.text or text
            if not answer.calls:
                reason = "completed" if answer.finish in ("stop", "tool_calls") else answer.finish
                break
            await self._execute(answer.calls, missions)
        if reason == "max_iterations":
            note = f"stopped after {self._settings.max_iterations} answers of the model"
            self._conversation.add("note", note, missions=_ids(missions))
        for mission in missions:
            mission.reason, mission.text = reason, text

    async def _ask(self, missions: tuple[Mission, ...]) -> Answer | None:
        """One answer of the model, recorded; None if the model failed, which is recorded too."""
        self.state = LoopState.STREAMING
        await self._look_for_tools()
        request = ModelRequest(self._conversation.messages(), self._tools)
        try:
            answer = await self._receive(request)
        except ModelError as error:
            self._conversation.add("error", f"the model failed: {error}", is_error=True, missions=_ids(missions))
            return None
        except Exception as error:
            _logger.exception("the model has a bug")
            text = f"the model failed: {type(error).__name__}: {error}"
            self._conversation.add("error", text, is_error=True, missions=_ids(missions))
            return None
        tool_calls = tuple(call.call for call in answer.calls)
        self._conversation.add("assistant", answer.text, tool_calls=tool_calls, missions=_ids(missions))
        return answer

    async def _receive(self, request: ModelRequest) -> Answer:
        assembler = ToolCallAssembler(tool.name for tool in request.tools)
        pieces: list[str] = []
        finish: str | None = None
        async with closing(self._model.stream(request)) as stream:
            async for delta in stream:
                finish = _take(delta, assembler, pieces) or finish
        calls = assembler.finish(complete=finish is not None, new_id=lambda: f"made_{next(self._call_numbers)}")
        return Answer("".join(pieces), calls, finish or CUT)

    async def _execute(self, calls: Iterable[AssembledCall], missions: tuple[Mission, ...]) -> None:
        """Run calls one after the other; each gets its result into the record, in order."""
        self.state = LoopState.EXECUTING
        for assembled in calls:
            result = await self._execute_one(assembled, missions)
            self._conversation.add(
                "tool",
                result.text,
                tool_call_id=assembled.call.id,
                skill=assembled.call.name,
                call_id=result.call_id,
                event=result.event,
                is_error=result.is_error,
                missions=_ids(missions),
            )

    async def _execute_one(self, assembled: AssembledCall, missions: tuple[Mission, ...]) -> CallResult:
        if assembled.damage is not None:
            return CallResult(assembled.problem, is_error=True)
        if _withdrawn(missions):
            return CallResult("not run: the operator has withdrawn this", is_error=True)
        try:
            call = await self._calls.start(assembled.call.name, assembled.arguments, missions)
        except SkillError as error:
            return CallResult(str(error), is_error=True)
        return await self._answer(call)

    async def _answer(self, call: OpenCall) -> CallResult:
        event = await self._calls.answer(call, self._settings.answer_timeout_s)
        if event is None:
            text = (
                f"No answer within {self._settings.answer_timeout_s:g} s. Call {call.call_id} is still running; "
                "what it says will be told."
            )
            return CallResult(text, call_id=call.call_id)
        return CallResult(answer_text(event), failed(event), call.call_id, event)

    async def _look_for_tools(self) -> None:
        """What is offered now; if the bridge can't say, what was offered last."""
        try:
            skills = await self._gateway.skills()
        except SkillError as error:
            _logger.warning("the skills can't be listed, the model gets those of the last time: %s", error)
            return
        self._tools = tuple(
            ToolSchema(skill.name, skill.description, skill.parameters)
            for skill in skills
            if skill.available and skill.audience == "everyone" and skill.module != self._module
        )


def _take(delta: ModelDelta, assembler: ToolCallAssembler, pieces: list[str]) -> str | None:
    """Put a delta where it belongs; the reason if it is the finish."""
    if isinstance(delta, TextDelta):
        pieces.append(delta.text)
    elif isinstance(delta, ToolCallDelta):
        assembler.add(delta)
    elif isinstance(delta, Finish):
        return delta.reason
    return None


def _ids(missions: Iterable[Mission]) -> frozenset[str]:
    return frozenset(mission.id for mission in missions)


def _withdrawn(missions: Sequence[Mission]) -> bool:
    return bool(missions) and all(mission.cancelled for mission in missions)
