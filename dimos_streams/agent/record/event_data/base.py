"""The fields that the data of events of several kinds have in common, and what is said of a single field."""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypeVar

from typing_extensions import TypedDict

from dimos_streams.agent.models.protocol import Speaker

T = TypeVar("T")
LENIENT: Final = "lenient"
Lenient: TypeAlias = Annotated[T, LENIENT]
"""The type of a field that each event of its kind is logged with, but that a line of a record may lack."""


class EventData(TypedDict):
    """The data that any event may have."""

    sub: NotRequired[str]
    """The sub-mission whose loop has logged it; the agent's own events have none."""


class TextData(EventData):
    """A text for people."""

    text: str


class ToolCallData(TypedDict):
    """A call that an answer asks for."""

    id: str
    name: str
    arguments: str
    extra: NotRequired[dict[str, Any] | None]


class EntryData(TypedDict):
    """The data that a conversation reads, whatever the kind of the event that makes an entry."""

    text: NotRequired[str]
    tool_calls: NotRequired[list[ToolCallData]]
    thoughts: NotRequired[str]
    thought_details: NotRequired[dict[str, list[dict[str, Any]]]]
    finish: NotRequired[str]
    tool_call_id: NotRequired[str]
    skill: NotRequired[str]
    call_id: NotRequired[str]
    is_error: NotRequired[bool]
    note: NotRequired[str]
    speaker: NotRequired[Speaker]
