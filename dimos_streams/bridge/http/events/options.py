"""Options of an event stream: the offset behind which it begins, and the treatment of its client."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_OFFSET = "^[0-9]{0,16}$"


def _offset(text: str) -> str:
    if not re.fullmatch(_OFFSET, text):
        raise ValueError("this is not an offset; take it from the id of an event")
    return text


LastEventId = Annotated[str, AfterValidator(_offset), Field(json_schema_extra={"pattern": _OFFSET})]
"""An offset as clients of server-sent events send it: empty before the first one."""


class StreamOptions(BaseModel):
    """The treatment of event streams' clients."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ping_s: float = Field(default=10.0, gt=0)
    """Pause without events, in seconds, after which a comment is sent."""
    send_timeout_s: float = Field(default=20.0, gt=0)
    """Time, in seconds, after which a client that takes nothing is cut off."""


def after_offset(last_event_id: str | None, from_offset: int | None) -> int | None:
    """The offset behind which a stream begins; what the client has read counts more than what it once asked for."""
    if last_event_id:
        return int(last_event_id)
    return None if from_offset is None else max(0, from_offset - 1)
