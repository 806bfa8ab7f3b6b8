"""The events of an agent, step by step: operators see them, and the mission record is made of them."""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from pydantic_core import to_jsonable_python

from dimos_streams import clock
from dimos_streams.common.json.reading import repaired
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.listeners import Listeners
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent

_CAPACITY = 1000
_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)


class EventKind(enum.StrEnum):
    """The kinds of an agent's events; ``docs/agent-loop.md`` says what is in them."""

    MISSION_START = "mission_start"
    INPUT = "input"
    UPDATE = "update"
    ITERATION_START = "iteration_start"
    CONTENT = "content"
    CALL_START = "call_start"
    CALL_COMPLETE = "call_complete"
    ANSWER = "answer"
    USAGE = "usage"
    RETRY = "retry"
    SHORTENED = "shortened"
    FORGOTTEN = "forgotten"
    MODEL_SWITCH = "model_switch"
    CALL_RUN = "call_run"
    CALL_OPEN = "call_open"
    CALL_END = "call_end"
    RESULT = "result"
    NOTE = "note"
    ERROR = "error"
    PAUSE = "pause"
    HOLD = "hold"
    RESUME = "resume"
    STEP = "step"
    CONSOLE = "console"
    ABORT = "abort"
    UNDO = "undo"
    STOP = "stop"
    ENDED = "ended"
    DONE = "done"
    SUB_MISSION_START = "sub_mission_start"
    SUB_MISSION_END = "sub_mission_end"
    FOREGROUND = "foreground"
    APPROVAL_CREATED = "approval_created"
    APPROVAL_CHANGED = "approval_changed"
    APPROVAL_DECIDED = "approval_decided"
    PLAN = "plan"
    FREE_MOTION = "free_motion"
    SKILL_SET = "skill_set"


class Emit(Protocol):
    """Writes to an agent's event log."""

    def __call__(self, kind: str, missions: Sequence[str] = (), **data: Any) -> object:
        """Log an event; ``data`` is JSON."""


class EventSink(Protocol):
    """The log to which one loop writes: the agent's own, or that of a sub-agent within it."""

    def emit(self, kind: str, missions: Sequence[str] = (), **data: Any) -> AgentEvent:
        """Log an event and return it; ``data`` is JSON."""


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
        self._listeners = Listeners[[AgentEvent]]()

    @property
    def last_number(self) -> int:
        """The newest event's number."""
        return self._number

    def emit(self, kind: str, missions: Sequence[str] = (), **data: Any) -> AgentEvent:
        """Log an event; ``data`` is JSON."""
        self._number += 1
        event = self._encodable(
            AgentEvent(
                number=self._number,
                utime=clock.utime(),
                agent=self._agent,
                kind=str(kind),
                missions=tuple(missions),
                data=data,
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


def tool_event_of(event: AgentEvent) -> ToolEvent | None:
    """The event of a call that an ``update`` or a ``result`` carries, or None for all other events."""
    carried = event.data.get("event") if event.kind in (EventKind.UPDATE, EventKind.RESULT) else None
    return ToolEvent.from_dict(carried) if carried else None
