"""The data that events of a record must have, by their kinds: whoever goes on from a record reads no others.

A record is a file, and whatever is in a file may be damaged. Fields that nobody reads are not looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from dimos_streams.agent.models.protocol import Speaker
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent

_MAX_COST = 1e12
_MAX_BOOT_S = 1e12
_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]


def _carried(event: dict[str, Any] | None) -> dict[str, Any] | None:
    """Raises ``ValueError`` for what is no event of a call."""
    if event:
        ToolEvent.from_dict(event)
    return event


class _AskedCall(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    id: str
    name: str
    arguments: str
    extra: dict[str, Any] | None = None


class EventData(BaseModel):
    """The data that any event may have."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    sub: str = ""
    text: str = ""
    note: str = ""
    finish: str = ""
    skill: str = ""
    call_id: str = ""
    tool_call_id: str = ""
    is_error: bool = False
    speaker: Speaker = "data"
    tool_calls: list[_AskedCall] = Field(default_factory=list)


class _Said(EventData):
    text: str


class _MissionStart(_Said):
    id: str
    is_done: bool = False
    boot: str = ""
    boot_s: Annotated[float, Field(ge=0, le=_MAX_BOOT_S)] = 0.0


class _OfCall(_Said):
    event: Annotated[dict[str, Any] | None, AfterValidator(_carried)] = None
    cancelled: str = ""
    heard: list[str] = Field(default_factory=list)


class _Result(_OfCall):
    skill: str


class _Answer(_Said):
    finish: str
    tool_calls: list[_AskedCall]
    why_cut: str = ""
    about: list[str] = Field(default_factory=list)


class _Usage(EventData):
    input_tokens: _Count
    output_tokens: _Count
    cost: Annotated[float, Field(ge=0, le=_MAX_COST)] | None


class _Begun(EventData):
    skill: str
    arguments: dict[str, Any]
    agents: list[str] = Field(default_factory=list)


class _CallOpen(_Begun):
    call_id: str
    undo: str = ""
    reversible: bool = True
    senses: bool = False


class _Note(_Said):
    model: str = ""
    lesson: str = ""

    @model_validator(mode="after")
    def _lesson_is_of_a_model(self) -> Self:
        if "lesson" in self.model_fields_set and "model" not in self.model_fields_set:
            raise ValueError("it has a lesson, and no model that it is about")
        return self


class _ModelSwitch(EventData):
    model: str
    was: str


class _Mode(EventData):
    was: str


class _StepOn(EventData):
    phase: Literal["on"]
    was: str


class _StepOfCall(EventData):
    phase: Literal["waits", "go"]


class _Console(EventData):
    present: bool


class _AbortStart(EventData):
    phase: Literal["start"]
    reason: str
    rollback: bool
    others: bool


class _AbortEnd(EventData):
    phase: Literal["end"]
    reason: str
    cancelled: list[str]
    unfinished: list[str] = Field(default_factory=list)


class _UndoStart(EventData):
    phase: Literal["start"]
    call_id: str


class _UndoEnd(_Said):
    phase: Literal["end"]
    call_id: str
    skill: str
    how: Literal["undone", "failed", "impossible"]
    arguments: dict[str, Any] = Field(default_factory=dict)
    left: bool = False


class _Stop(_Said):
    reason: str
    note: str
    why: str = ""
    about: list[str] = Field(default_factory=list)


class _Ended(EventData):
    reason: str
    turn_goes_on: bool = False


class _Done(_Said):
    reason: str


class _AskedOperator(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    id: str
    skill: str
    state: str
    arguments: dict[str, Any]


class _Approval(EventData):
    approval: _AskedOperator
    why: str = ""


class _FreeMotion(EventData):
    motions: Literal[1, -1]


class _SkillSet(EventData):
    skill: str
    enabled: bool


DATA_OF: Mapping[str, Any] = {
    EventKind.MISSION_START: _MissionStart,
    EventKind.INPUT: _Said,
    EventKind.UPDATE: _OfCall,
    EventKind.CALL_RUN: _Begun,
    EventKind.CALL_OPEN: _CallOpen,
    EventKind.ANSWER: _Answer,
    EventKind.USAGE: _Usage,
    EventKind.RETRY: _Said,
    EventKind.SHORTENED: _Said,
    EventKind.FORGOTTEN: _Said,
    EventKind.MODEL_SWITCH: _ModelSwitch,
    EventKind.RESULT: _Result,
    EventKind.NOTE: _Note,
    EventKind.ERROR: _Said,
    EventKind.PAUSE: _Mode,
    EventKind.HOLD: _Said,
    EventKind.RESUME: _Mode,
    EventKind.STEP: Annotated[_StepOn | _StepOfCall, Field(discriminator="phase")],
    EventKind.CONSOLE: _Console,
    EventKind.ABORT: Annotated[_AbortStart | _AbortEnd, Field(discriminator="phase")],
    EventKind.UNDO: Annotated[_UndoStart | _UndoEnd, Field(discriminator="phase")],
    EventKind.STOP: _Stop,
    EventKind.ENDED: _Ended,
    EventKind.DONE: _Done,
    EventKind.APPROVAL_CREATED: _Approval,
    EventKind.APPROVAL_DECIDED: _Approval,
    EventKind.FREE_MOTION: _FreeMotion,
    EventKind.SKILL_SET: _SkillSet,
}
"""The kinds whose events must have data of their own; for all others ``EventData`` says enough."""


def check_data(event: AgentEvent) -> None:
    """Raise pydantic's ``ValidationError`` for an event without the data that its kind must have."""
    _check_of(DATA_OF.get(event.kind, EventData)).validate_python(event.data)


@functools.cache
def _check_of(type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type)
