"""The calls in the journal of a run that has ended, read without changing anything of it."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from pathlib import Path

from pydantic import ValidationError

from dimos_streams.bridge.calls.call_state import CallState
from dimos_streams.bridge.journal import tables
from dimos_streams.bridge.journal.tail import left_in_tail
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.text import parse_json
from dimos_streams.errors import DimosStreamsError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView


def kept_calls(path: Path) -> list[CallView]:
    """Return the calls of a journal's file that nobody writes, oldest first; those that were open when its bridge
    ended are open. Raises ``DimosStreamsError`` for a file that is damaged, no journal, or can't be read."""
    try:
        with contextlib.closing(tables.open_read_only(path)) as db:
            calls = {row.call_id: CallState.from_row(row) for row in tables.call_rows(db, sys.maxsize)}
            events = _newest(db, path)
    except ValidationError as error:
        raise DimosStreamsError(f"the journal {path} is damaged: {first_problem(error, 'a call')}") from error
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        raise DimosStreamsError(f"the journal {path} can't be read: {error}") from error
    for event in events:
        if (call := calls.get(event.call_id)) is not None and event.seq >= call.last_seq:
            call.apply(event)
    return sorted((call.view() for call in calls.values()), key=lambda view: view.requested_utime)


def _newest(db: sqlite3.Connection, path: Path) -> list[ToolEvent]:
    """The newest event of each call that is open, then those that only the tail has: the row of a call is not kept
    with each of its events. Raises ``sqlite3.Error``, and ``ValueError`` or ``TypeError`` for what is no event."""
    bodies = tables.newest_of_open_calls(db)
    identity, ends = tables.identity(db), tables.offsets(db)
    if identity is not None and ends is not None:
        bodies += [row[-1] for row in left_in_tail(path, identity.journal_id, ends[1])]
    return [ToolEvent.from_dict(parse_json(body)) for body in bodies]
