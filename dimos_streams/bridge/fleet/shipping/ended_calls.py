"""The ends of calls that were open when their run was killed: nobody else is left to say how they ended."""

from __future__ import annotations

import sqlite3

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.journal import tables
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.tool_stream.event import Outcome, ToolEvent

_WHY = "its run ended before the call did"


def close_open_calls(db: sqlite3.Connection, last: int) -> None:
    """Close all calls of a journal that nobody writes any more as lost; ``last`` is its newest offset. A call of
    which there is no event is left out: no reader of events knows it. Raises ``sqlite3.Error``."""
    calls: list[CallState] = []
    closes: list[ToolEvent] = []
    newest = tables.newest_seqs(db)
    for row in tables.call_rows(db, 0):
        if row.closed or row.call_id not in newest or (call := CallState.read(row)) is None:
            continue
        seq = max(row.last_seq, newest[row.call_id]) + 1
        close = call.event(seq, "close", _WHY, {"outcome": str(Outcome.LOST)})
        call.apply(close)
        calls.append(call)
        closes.append(close)
    if calls:
        entries = [EncodedEntry.of(offset, event) for offset, event in enumerate(closes, start=last + 1)]
        tables.write(db, tables.rows_of(entries, closes), [call.row() for call in calls])
