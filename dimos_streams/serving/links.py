"""``Link`` headers (RFC 8288): where clients find what belongs to an answer.

They are relative to what was asked for (RFC 3986 section 4.2), as ``Location`` is: a proxy may serve it all below a
path that nobody behind it knows.
"""

from __future__ import annotations

from urllib.parse import urlencode

CALL = "The call, relative to what was asked for."
OLDER = '`rel="next"`: those before them, if there are any; relative to what was asked for.'
EVENTS = '`rel="events"`: the event stream from before the call began; relative to what was asked for.'


def older(path: str, **asked: str | int | None) -> str:
    """The link to the page before one at ``path``; ``asked`` are the parameters of its request, those that are None
    left out."""
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return f'<{path}?{query}>; rel="next"'


def events_from(offset: int) -> str:
    """The link to the events from an offset on."""
    return f'<tool_streams?from={offset}>; rel="events"'
