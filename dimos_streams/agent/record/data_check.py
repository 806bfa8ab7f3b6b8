"""Checks the data of an event that was read from a record: whoever goes on from the record reads no other.

A record is a file, and whatever is in a file may be damaged. Fields that nobody knows are not looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Union

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict, get_type_hints

from dimos_streams.agent.record.agent_events import KINDS
from dimos_streams.agent.record.event_data.base import LENIENT, EntryData, EventData
from dimos_streams.operator.messages.agent import AgentEvent


def check_data(event: AgentEvent) -> None:
    """Raise pydantic's ``ValidationError`` for an event without the data that its kind must have."""
    for of_any_kind in (EventData, EntryData):
        recorded((of_any_kind,)).validate_python(event.data, strict=True)
    if (kind := KINDS.get(event.kind)) is not None:
        recorded(kind.types).validate_python(event.data, strict=True)


@functools.cache
def recorded(types: tuple[Callable[..., Any], ...]) -> TypeAdapter[Any]:
    """The check of data that is of one of these types."""
    forms = tuple(map(_recorded, types))
    if len(forms) == 1:
        return TypeAdapter(forms[0])
    any_of: Any = Union[forms]  # noqa: UP007 - they are a tuple
    return TypeAdapter(Annotated[any_of, Field(discriminator="phase")])


def _recorded(type: Callable[..., Any]) -> Any:
    """The form that data of a type has in a record: without the fields that a line of it may lack."""
    fields = get_type_hints(type, include_extras=True)
    return TypedDict(type.__name__, {name: _lenient(of) for name, of in fields.items()})  # type: ignore[operator]


def _lenient(field: Any) -> Any:
    return NotRequired[field] if LENIENT in getattr(field, "__metadata__", ()) else field
