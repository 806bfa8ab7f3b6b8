"""``Link`` headers (RFC 8288): where clients find what belongs to an answer."""

from __future__ import annotations

from urllib.parse import urlencode

OLDER = '`rel="next"`: those before them, if there are any.'
EVENTS = '`rel="events"`: the event stream from before the call began.'


def older(path: str, **asked: str | int | None) -> str:
    """The link to the page before one; ``asked`` are the parameters of its request, those that are None left out."""
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return f'<{path}?{query}>; rel="next"'


def events_from(offset: int) -> str:
    """The link to the events from an offset on."""
    return f'</tool_streams?from={offset}>; rel="events"'
