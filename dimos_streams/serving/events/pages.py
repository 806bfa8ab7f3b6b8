"""Pages of events for readers that look back: ``GET /events`` of whatever has a ``Broadcast``, a bridge or a hub."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.journal.entry import gap_entry
from dimos_streams.journal.query import QueryBack
from dimos_streams.serving import links
from dimos_streams.serving.events.parameters import OFFSETS_END
from dimos_streams.serving.openapi import EVENT, Described, answers

NEWEST = OFFSETS_END - 1
"""An offset before which all events come."""
DEFAULT_LIMIT = 250
MAX_LIMIT = 1000
PAGE_BYTES = 256 * 1024
"""Maximum size of a page, in bytes; a larger event is a page by itself."""

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The most events that the page may have.")]
Before = Annotated[int, Query(ge=0, le=NEWEST, description="An offset; the page has what came before it.")]
Progress = Annotated[bool, Query(description="Whether `progress` is wanted, which is left out otherwise.")]

_ENTRY = {
    "type": "object",
    "required": ["offset", "event"],
    "additionalProperties": False,
    "properties": {
        "offset": {"type": "integer"},
        "event": EVENT,
    },
}
ANSWER: Described = answers(
    200,
    "Events, oldest first. A page may have fewer than are wanted, or none, and others before it all the same.",
    {"type": "array", "items": _ENTRY},
    media_type="application/json",
    Link=links.OLDER,
)


async def page_back(broadcast: Broadcast, query: QueryBack, limit: int) -> Response:
    """The answer to a request. Where older events are not kept any more, the oldest page begins with a ``gap``."""
    read = await broadcast.pages.page_back(query, limit, PAGE_BYTES)
    entries, headers = read.entries, {}
    if read.since > read.first:
        headers["Link"] = _link(query._replace(before=read.since), limit)
    elif read.first > 1:
        text = f"the events of offsets 1 to {read.first - 1} are not kept any more"
        trimmed = gap_entry(read.first - 1, 1, read.first - 1, text, caller=query.caller)
        entries = [trimmed, *entries]
    body = b",".join(b'{"offset":%d,"event":%b}' % (entry.offset, entry.body) for entry in entries)
    return Response(b"[%b]" % body, headers=headers, media_type="application/json")


def _link(query: QueryBack, limit: int) -> str:
    return links.older(
        "/events",
        call=query.call_id,
        caller=query.caller,
        robot=query.robot,
        progress="true" if query.progress else None,
        limit=limit,
        before=query.before,
    )
