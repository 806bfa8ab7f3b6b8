"""The data of events about calls, from their beginning to their being taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator
from typing_extensions import TypedDict

from dimos_streams.agent.models.protocol import Speaker
from dimos_streams.agent.record.event_data.base import EventData, Lenient, TextData
from dimos_streams.tool_stream.event import ToolEvent


def _carried(event: dict[str, Any] | None) -> dict[str, Any] | None:
    """Raises ``ValueError`` for what is no event of a call."""
    if event:
        ToolEvent.from_dict(event)
    return event


_Carried: TypeAlias = Annotated[dict[str, Any] | None, AfterValidator(_carried)]


class CallRunData(EventData):
    """A call has passed the gates and begins."""

    tool_call_id: Lenient[str]
    skill: str
    arguments: dict[str, Any]
    agents: NotRequired[list[str]]
    """The sub-agents whose lists it is held to, the outermost first."""


class CallOpenData(CallRunData):
    """A call has begun."""

    call_id: str
    undo: Lenient[str]
    reversible: Lenient[bool]
    senses: Lenient[bool]
    parent: NotRequired[str]


class CallEndData(EventData):
    """A call's result is known."""

    tool_call_id: Lenient[str]
    skill: Lenient[str]
    call_id: Lenient[str]
    is_error: Lenient[bool]
    outcome: Lenient[str | None]
    text: Lenient[str]


class UpdateData(TextData):
    """A turn takes up what a call, or the agent itself, has to say."""

    skill: Lenient[str]
    call_id: NotRequired[str]
    event: NotRequired[_Carried]
    is_error: NotRequired[bool]
    cancelled: NotRequired[str]


class ResultRemarks(TypedDict):
    """The data that few results have."""

    note: NotRequired[str]
    speaker: NotRequired[Speaker]
    cancelled: NotRequired[str]


class HeardMissions(TypedDict):
    """Data about a call that counts for some missions of its turn only."""

    heard: NotRequired[Sequence[str]]


class ResultData(TextData, ResultRemarks, HeardMissions):
    """A call's result reaches the model."""

    tool_call_id: Lenient[str]
    skill: str
    call_id: Lenient[str]
    is_error: Lenient[bool]
    event: Lenient[_Carried]


class UndoStart(EventData):
    """A call begins to be taken back."""

    phase: Literal["start"]
    call_id: str
    skill: Lenient[str]


class UndoEnd(TextData):
    """A call was taken back, or could not be."""

    phase: Literal["end"]
    call_id: str
    skill: str
    arguments: Lenient[dict[str, Any]]
    how: Literal["undone", "failed", "impossible"]
    left: Lenient[bool]
