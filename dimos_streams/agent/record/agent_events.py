"""The events of an agent, step by step: operators see them, and the mission record is made of them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

from pydantic_core import to_jsonable_python

from dimos_streams import clock
from dimos_streams.agent.record.event_data import calls, missions, model_answers, operators
from dimos_streams.agent.record.event_data.base import EntryData, EventData, TextData
from dimos_streams.agent.record.kind import Kind, P, PhasedKind
from dimos_streams.common.json.reading import repaired
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.listeners import Listeners
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent

_CAPACITY = 1000
_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)


class EventKind:
    """The kinds of an agent's events; ``docs/agent-loop.md`` says what is in them."""

    MISSION_START: Final = Kind("mission_start", missions.MissionStartData)
    INPUT: Final = Kind("input", missions.InputData)
    UPDATE: Final = Kind("update", calls.UpdateData)
    ITERATION_START: Final = Kind("iteration_start", model_answers.IterationStartData)
    CONTENT: Final = Kind("content", model_answers.ContentData)
    CALL_START: Final = Kind("call_start", model_answers.CallStartData)
    CALL_COMPLETE: Final = Kind("call_complete", model_answers.CallCompleteData)
    ANSWER: Final = Kind("answer", model_answers.AnswerData)
    USAGE: Final = Kind("usage", model_answers.UsageData)
    RETRY: Final = Kind("retry", model_answers.RetryData)
    SHORTENED: Final = Kind("shortened", model_answers.ShortenedData)
    FORGOTTEN: Final = Kind("forgotten", TextData)
    MODEL_SWITCH: Final = Kind("model_switch", model_answers.ModelSwitchData)
    CALL_RUN: Final = Kind("call_run", calls.CallRunData)
    CALL_OPEN: Final = Kind("call_open", calls.CallOpenData)
    CALL_END: Final = Kind("call_end", calls.CallEndData)
    RESULT: Final = Kind("result", calls.ResultData)
    ORDER: Final = Kind("order", operators.OrderData)
    NOTE: Final = Kind("note", operators.NoteData)
    ERROR: Final = Kind("error", model_answers.ErrorData)
    PAUSE: Final = Kind("pause", operators.ModeData)
    HOLD: Final = Kind("hold", operators.HoldData)
    RESUME: Final = Kind("resume", operators.ModeData)
    STEP: Final[PhasedKind[operators.StepOn | operators.StepWaits | operators.StepGo]] = Kind.of_phases(
        "step", operators.StepOn, operators.StepWaits, operators.StepGo
    )
    CONSOLE: Final = Kind("console", operators.ConsoleData)
    ABORT: Final[PhasedKind[operators.AbortStart | operators.AbortEnd]] = Kind.of_phases(
        "abort", operators.AbortStart, operators.AbortEnd
    )
    UNDO: Final[PhasedKind[calls.UndoStart | calls.UndoEnd]] = Kind.of_phases("undo", calls.UndoStart, calls.UndoEnd)
    STOP: Final = Kind("stop", missions.StopData)
    ENDED: Final = Kind("ended", missions.EndedData)
    DONE: Final = Kind("done", missions.DoneData)
    SUB_MISSION_START: Final = Kind("sub_mission_start", missions.SubMissionStartData)
    SUB_MISSION_END: Final = Kind("sub_mission_end", missions.SubMissionEndData)
    FOREGROUND: Final = Kind("foreground", operators.ForegroundData)
    APPROVAL_CREATED: Final = Kind("approval_created", operators.ApprovalCreatedData)
    APPROVAL_CHANGED: Final = Kind("approval_changed", operators.ApprovalChangedData)
    APPROVAL_DECIDED: Final = Kind("approval_decided", operators.ApprovalDecidedData)
    PLAN: Final = Kind("plan", operators.PlanData)
    FREE_MOTION: Final = Kind("free_motion", operators.FreeMotionData)
    SKILL_SET: Final = Kind("skill_set", operators.SkillSetData)


KINDS: Final[Mapping[str, Kind[..., Any]]] = {
    str(kind): kind for kind in vars(EventKind).values() if isinstance(kind, Kind)
}
"""The kinds by their names."""


class Emit(Protocol):
    """Writes to an agent's event log."""

    def __call__(self, kind: Kind[P, Any], missions: Sequence[str] = (), *phase: P.args, **data: P.kwargs) -> object:
        """Log an event; ``data`` is JSON, and so is that of a ``phase``."""


class EventSink(Protocol):
    """The log to which one loop writes: the agent's own, or that of a sub-agent within it."""

    def emit(self, kind: Kind[P, Any], missions: Sequence[str] = (), *phase: P.args, **data: P.kwargs) -> AgentEvent:
        """Log an event and return it; see ``Emit``."""


Listener: TypeAlias = Callable[[AgentEvent], None]


class EventLog:
    """Numbers events, keeps the newest ``_CAPACITY`` of them, and calls listeners at once, in order.

    A listener that fails is logged; it hinders neither the others nor the agent. Data that could not be written down
    is replaced by what can be: every event has a JSON form.
    """

    def __init__(self, agent: str, *, last_number: int = 0) -> None:
        """``last_number`` is the number of the newest event of an earlier process of the agent, from its record."""
        self._agent = agent
        self._number = last_number
        self._kept: deque[AgentEvent] = deque(maxlen=_CAPACITY)
        self._listeners: Listeners[[AgentEvent]] = Listeners()

    @property
    def last_number(self) -> int:
        """The newest event's number."""
        return self._number

    def emit(self, kind: Kind[P, Any], missions: Sequence[str] = (), *phase: P.args, **data: P.kwargs) -> AgentEvent:
        """See ``EventSink``."""
        self._number += 1
        event = self._encodable(
            AgentEvent(
                number=self._number,
                utime=clock.utime(),
                agent=self._agent,
                kind=str(kind),
                missions=tuple(missions),
                data=data_from(phase, data),
            )
        )
        self._kept.append(event)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener to the agent's events failed at %s", event.kind)
        return event

    def _encodable(self, event: AgentEvent) -> AgentEvent:
        try:
            event.model_dump_json()
        except ValueError as error:
            _log.warning("an event of kind %s was repaired: %s", event.kind, error)
            return event.model_copy(update={"data": repaired(to_jsonable_python(event.data, fallback=ascii))})
        return event

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each event from now on. Return a function that ends that, and may be called
        twice."""
        return self._listeners.add(listener)

    def after(self, number: int) -> list[AgentEvent]:
        """The events with higher numbers, as far as they are kept."""
        return [event for event in self._kept if event.number > number]


def data_from(phase: tuple[Any, ...], data: dict[str, Any]) -> dict[str, Any]:
    """The data of an event, from the arguments with which it is logged."""
    return dict(*phase) if phase else data


def reported(event: AgentEvent) -> AgentEvent:
    """An event as operators are told of it: without what only a model's server reads, which may be so long that all
    else would be shortened for it."""
    answer = EventKind.ANSWER.data_of(event)
    if answer is None:
        return event
    calls = [{name: part for name, part in call.items() if name != "extra"} for call in answer["tool_calls"]]
    kept = {name: part for name, part in answer.items() if name != "thought_details"}
    return event.model_copy(update={"data": {**kept, "tool_calls": calls}})


def sub_of(event: AgentEvent) -> str:
    """The sub-mission whose loop has logged an event; empty for the agent's own."""
    return cast("EventData", event.data).get("sub", "")


def lesson_of(event: AgentEvent) -> tuple[str, str] | None:
    """The model whose server an event tells something of, and what was learnt of it; None for all other events."""
    note = EventKind.NOTE.data_of(event)
    return (note["model"], note["lesson"]) if note and "model" in note and "lesson" in note else None


def tool_call_of(event: AgentEvent) -> str:
    """The model's id of the call that an event is about, empty for an event that is about none."""
    return cast("EntryData", event.data).get("tool_call_id", "")


def delivered_by(event: AgentEvent) -> calls.UpdateData | calls.ResultData | None:
    """The data of an event by which the model hears of a call, or None for all other events."""
    return EventKind.UPDATE.data_of(event) or EventKind.RESULT.data_of(event)


def tool_event_of(event: AgentEvent) -> ToolEvent | None:
    """The event of a call that an ``update`` or a ``result`` carries, or None for all other events."""
    said = delivered_by(event)
    carried = said.get("event") if said else None
    return ToolEvent.from_dict(carried) if carried else None
