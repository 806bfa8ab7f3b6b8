"""The calls and events in the journal of a run that has ended, read without changing anything of it."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.errors import DimosStreamsError
from dimos_streams.journal import tables
from dimos_streams.journal.files.tail import left_in_tail
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView


def kept_calls(path: Path) -> list[CallView]:
    """Return the calls of a journal's file that nobody writes, oldest first; those that were open when its bridge
    ended are open. Raises ``DimosStreamsError`` for a file that is damaged, no journal, or can't be read."""
    with _reading(path) as db:
        # By their numbers, which a clock that is set changes nothing of.
        calls = {row.call_id: CallState.from_row(row) for row in tables.call_rows(db, sys.maxsize)}
        # The row of a call is not kept with each of its events.
        for event in _events([*tables.newest_of_open_calls(db), *_left(db, path)]):
            if (call := calls.get(event.call_id)) is not None and event.seq >= call.last_seq:
                call.apply(event)
        return [call.view() for call in calls.values()]


def kept_events(path: Path, call_id: str) -> list[ToolEvent]:
    """Return the events of a call that are left in a journal's file that nobody writes, in their order. Raises
    ``DimosStreamsError`` as ``kept_calls`` does."""
    with _reading(path) as db:
        events = _events([*tables.events_of_call(db, call_id), *_left(db, path)])
    return [event for event in events if event.call_id == call_id]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a journal to read. What is wrong with what is read of it becomes a ``DimosStreamsError``."""
    try:
        with contextlib.closing(tables.open_read_only(path)) as db:
            yield db
    except ValidationError as error:
        raise DimosStreamsError(f"the journal {path} is damaged: {first_problem(error, 'a call')}") from error
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        raise DimosStreamsError(f"the journal {path} can't be read: {error}") from error


def _left(db: sqlite3.Connection, path: Path) -> list[bytes]:
    """Return the events, as JSON, that only the tail has."""
    identity, ends = tables.identity(db), tables.offsets(db)
    if identity is None or ends is None:
        return []
    if not isinstance(identity.journal_id, str):
        raise TypeError(f"its name is {identity.journal_id!r:.100}, and no text")
    return [row[-1] for row in left_in_tail(path, identity.journal_id, ends[1])]


def _events(bodies: Iterable[object]) -> list[ToolEvent]:
    """Return events from their JSON. Raises ``ValueError`` or ``TypeError`` for what is no event, and no JSON."""
    return [ToolEvent.from_dict(parse_json(_json(body))) for body in bodies]


def _json(body: object) -> bytes:
    """Return what a row has as an event's JSON. Raises ``TypeError`` for NULL and all else that is no JSON: a column
    of a damaged file has whatever was put there."""
    if not isinstance(body, bytes):
        raise TypeError(f"the body of an event is {body!r:.100}, and no JSON")
    return body
