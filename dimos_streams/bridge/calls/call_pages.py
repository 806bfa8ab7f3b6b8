"""Lists of calls in pages of a bounded size; the first page has the newest calls."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
PAGE_BYTES = 256 * 1024
"""Maximum size of a page, in bytes; a larger call is a page by itself."""

_SLICE = 32
"""Number of calls that are put into a page in one turn of the loop."""
_CURSOR = r"^(-?[0-9]{1,20})-([^\n]{1,200})$"


class Cursor(NamedTuple):
    """The position of a call among all, oldest first."""

    number: int
    call_id: str

    @classmethod
    def of(cls, call: CallState) -> Cursor:
        """The position of a call."""
        return cls(*call.position)

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """The inverse of ``str``. Raises ``ValueError`` for a text that is not the cursor of a page."""
        match = re.fullmatch(_CURSOR, text)
        if match is None:
            raise ValueError("this is not where a page ends; take it from the Link header of one")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.number}-{self.call_id}"


def _checked(text: str) -> str:
    Cursor.parse(text)
    return text


CursorText = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": _CURSOR})]
"""A cursor as it is in URLs."""


WantedState = Literal["open", "closed"]
"""The state of the calls that are wanted; one that was only requested counts as open."""


@dataclass(frozen=True, slots=True)
class CallPage:
    """Some calls, oldest first, as a JSON array, and the cursor for those before them."""

    body: bytes
    before: Cursor | None
    """The oldest call of the page; None if there are no older ones."""


class CallQuery(NamedTuple):
    """A query for calls: the newest ones before a position, up to a number."""

    state: WantedState | None = None
    before: Cursor | None = None
    limit: int = DEFAULT_LIMIT

    async def page(self, calls: Iterable[CallState], turn: asyncio.Lock) -> CallPage:
        """Return the page of the wanted calls out of ``calls``, which may be in any order; each is shown as it is
        when the page comes to it.

        A thousand calls take some 30 ms. Pages that are asked for at the same time take turns by the lock ``turn``,
        so that a turn of the loop is as short as if there were only one.
        """
        wanted = [call for call in calls if self._wants(call)]
        newest = heapq.nlargest(self.limit, wanted, key=attrgetter("position"))
        encoded: list[bytes] = []
        room = PAGE_BYTES
        while room > 0 and len(encoded) < len(newest):
            async with turn:
                room = _encode(newest[len(encoded) : len(encoded) + _SLICE], encoded, room)
                await asyncio.sleep(0)
        is_all = len(encoded) == len(wanted)
        before = None if is_all else Cursor.of(newest[len(encoded) - 1])
        return CallPage(b"[%b]" % b",".join(reversed(encoded)), before)

    def _wants(self, call: CallState) -> bool:
        if self.before is not None and Cursor.of(call) >= self.before:
            return False
        if call.state == CLOSED and not call.journalled:  # a look, or a check of settings that changes none
            return False
        return self.state is None or (call.state == CLOSED) == (self.state == "closed")


def _encode(calls: Iterable[CallState], encoded: list[bytes], room: int) -> int:
    """Append calls as JSON while there is room, the first one always; return the room that is left, 0 for none."""
    for call in calls:
        body = call.view().model_dump_json().encode()
        room -= len(body)
        if encoded and room < 0:
            return 0
        encoded.append(body)
    return max(room, 0)
