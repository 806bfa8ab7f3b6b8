"""The answer that a client waits for on a stream, and, if that is cut, on the next one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dimos_streams.bridge.mcp.messages import Id
from dimos_streams.serving.events.parameters import OFFSETS_END

_RETRY_MS = 3000
"""Clients of the official libraries try twice: that is time enough for a bridge to be restarted."""
_Parts = tuple[str, Annotated[int, Field(ge=0, lt=OFFSETS_END)], Id]
_PARTS: TypeAdapter[_Parts] = TypeAdapter(_Parts, config=ConfigDict(strict=True))


@dataclass(frozen=True, slots=True)
class Awaited:
    """The answer to the request for a call. The id of an event names all of it, so that a server that does not know
    the request goes on with it. It gives nobody a right: the call has to be the client's."""

    call_id: str
    cursor: int
    """The offset behind which the answer is."""
    request: Id

    @property
    def frame(self) -> bytes:
        """The event without data by which a client learns where to go on."""
        return b"id: %b\nretry: %d\ndata:\n\n" % (
            json.dumps([self.call_id, self.cursor, self.request]).encode(),
            _RETRY_MS,
        )

    @classmethod
    def named(cls, event_id: str) -> Awaited | None:
        """The answer that an event's id names; None if it names none."""
        try:
            return cls(*_PARTS.validate_json(event_id))
        except ValidationError:
            return None
