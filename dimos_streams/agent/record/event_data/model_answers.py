"""The data of events about a model: what it is asked, what it says and costs, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypeAlias

from pydantic import Field

from dimos_streams.agent.record.event_data.base import EventData, Lenient, TextData, ToolCallData

# Others compute with these numbers, and a record may have any.
_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
_Cost: TypeAlias = Annotated[float, Field(ge=0, le=1e12)]


class IterationStartData(EventData):
    """The model is asked."""

    iteration: Lenient[int]


class ContentData(EventData):
    """The model says something."""

    text: Lenient[str]
    reasoning: NotRequired[bool]


class CallStartData(EventData):
    """A call begins to appear in the model's answer."""

    skill: Lenient[str]


class CallCompleteData(EventData):
    """A call of the answer is whole."""

    tool_call_id: Lenient[str]
    skill: Lenient[str]
    arguments: Lenient[dict[str, Any] | str]
    damage: Lenient[str | None]


class AnswerData(TextData):
    """The model's answer is whole, or was cut off."""

    finish: str
    why_cut: NotRequired[str]
    tool_calls: list[ToolCallData]
    thoughts: NotRequired[str]
    thought_details: NotRequired[dict[str, list[dict[str, Any]]]]
    about: NotRequired[Sequence[str]]


class UsageData(EventData):
    """The model has used tokens."""

    input_tokens: _Count
    output_tokens: _Count
    cached_tokens: Lenient[int]
    cost: _Cost | None
    estimated: Lenient[bool]


class RetryData(TextData):
    """The model failed and is asked again."""

    error: Lenient[str]
    attempt: Lenient[int]
    attempts: Lenient[int]
    delay_s: Lenient[float]


class ShortenedData(TextData):
    """The older half of the conversation is kept from the model from now on."""

    attempt: Lenient[int]


class ModelSwitchData(EventData):
    """Another model is asked from now on."""

    model: str
    was: str


class ErrorData(TextData):
    """The model failed."""

    is_error: Lenient[bool]
