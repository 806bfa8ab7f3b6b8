"""The parameters by which requests for events say which they want."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header, Query
from pydantic import AfterValidator, Field

OFFSETS_END = 2**53
"""The bound below which all offsets are: up to there every program reads JSON's whole numbers as they are."""
_OFFSET = "^[0-9]{0,16}$"


def _offset(text: str) -> str:
    if not re.fullmatch(_OFFSET, text):
        raise ValueError("this is not an offset; take it from the id of an event")
    return text


OfCall = Annotated[str | None, Query(description="The id of a call: only its events are wanted.")]
OfCaller = Annotated[str | None, Query(description="A caller: only the events of its calls are wanted.")]
From = Annotated[
    int | None,
    Query(
        alias="from",
        ge=0,
        lt=OFFSETS_END,
        description="The offset of the first event that is wanted; without it, the stream begins with those to come.",
    ),
]
_OffsetText = Annotated[str, AfterValidator(_offset), Field(json_schema_extra={"pattern": _OFFSET})]
LastEventId = Annotated[
    _OffsetText | None,
    Header(description="The offset of the last event that was read, empty for none; it counts more than `from`."),
]
LastRead = Annotated[_OffsetText | None, Query(alias="lastEventId", include_in_schema=False)]
"""What ``Last-Event-ID`` says, of polyfills that put it into the address. Not declared, since generated clients would
have two parameters of one name."""


def after_offset(last_event_id: str | None, from_offset: int | None) -> int | None:
    """The offset behind which a stream begins; what the client has read counts more than what it once asked for."""
    if last_event_id:
        return int(last_event_id)
    return None if from_offset is None else max(0, from_offset - 1)
