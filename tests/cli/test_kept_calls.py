"""The calls of a journal that nobody writes any more."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.cli.bridge_client.kept_calls import kept_calls, kept_events
from dimos_streams.errors import DimosStreamsError
from dimos_streams.tool_stream.event import EventType
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event


def state(call_id: str, *types: EventType) -> CallState:
    """A call after events of these types."""
    call = CallState.from_event(event(1, "open", call_id=call_id))
    for seq, type in enumerate(types, 2):
        call.apply(event(seq, type, call_id=call_id, text=f"{type} {seq}"))
    return call


def test_open_calls_have_the_newest_event_wherever_that_was_kept(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    said, closed = state("a", "update"), state("b", "update", "close")
    journal.append([event(seq, call_id=call) for call in "ab" for seq in (1, 2)], [said.row(), closed.row()])
    journal.append([event(3, "progress", call_id="a", text="half of it")])
    assert [(view.call_id, view.state, view.text) for view in kept_calls(path)] == [
        ("a", "open", "half of it"),
        ("b", "closed", "close 3"),
    ]
    journal.keep([event(4, "progress", call_id="a", text="only in the tail")])
    assert kept_calls(path)[0].text == "only in the tail"
    journal.close()
    files = {each: each.stat().st_mtime_ns for each in tmp_path.iterdir()}
    assert (kept_calls(path)[0].text, kept_calls(path)[0].last_seq) == ("only in the tail", 4)
    assert {each: each.stat().st_mtime_ns for each in tmp_path.iterdir()} == files, "it stays as it is"


def test_calls_are_in_the_order_in_which_they_began_whatever_their_clock_said(
    tmp_path: Path, opened: OpenJournal
) -> None:
    journal = opened(tmp_path / "journal.sqlite")
    for call_id, utime in (("first", 9_000_000), ("second", 2_000_000), ("third", 3_000_000)):
        call = state(call_id, "update")
        call.requested_utime = utime
        journal.append([event(1, "open", call_id=call_id)], [call.row()])
    journal.close()
    assert [view.call_id for view in kept_calls(tmp_path / "journal.sqlite")] == ["first", "second", "third"]


def test_a_file_that_is_no_journal_or_damaged_is_named(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"

    def why() -> str:
        with pytest.raises(DimosStreamsError) as found:
            kept_calls(path)
        return str(found.value).removeprefix(f"the journal {path} ")

    assert why() == "can't be read: unable to open database file"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE calls (number INTEGER)")
    assert why() == "can't be read: it is another program's database"
    path.unlink()
    opened(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE calls")
        db.execute("CREATE VIEW calls AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n FROM a) SELECT n FROM a")
    assert why() == "can't be read: its tables are not those of a journal"
    path.unlink()
    os.mkfifo(path)
    assert why() == "can't be read: it is a device or a pipe, which may have no end"
    path.unlink()
    journal = opened(path)
    journal.append([event(1, "open", call_id="a")], [state("a").row()._replace(record='{"call_id": 7}')])
    assert why().startswith("is damaged: ")
    journal.append([event(2, call_id="a")], [state("a").row()])
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET body = ? WHERE seq = 2", (b"{",))
        db.commit()
    assert why().startswith("can't be read: ")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert why() == "can't be read: database disk image is malformed"


VALUES = (
    *(("events", "body", value) for value in (None, 7, 1.5, "{", "{}", b"{", b"7")),
    *(("calls", "last_seq", value) for value in (None, "a", b"a")),
    *(("calls", "record", value) for value in (None, 7, b"\xff", "[]")),
    *(("identity", "journal_id", value) for value in (None, b"a")),
)


@pytest.mark.parametrize(("table", "column", "value"), VALUES)
def test_a_journal_with_a_value_that_is_none_of_its_column_is_damaged(
    tmp_path: Path, opened: OpenJournal, table: str, column: str, value: object
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1, "open", call_id="a"), event(2, call_id="a")], [state("a", "update").row()])
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    with pytest.raises(DimosStreamsError, match=r"^the journal .* (can't be read|is damaged): "):
        kept_calls(path)
    if table != "calls":
        with pytest.raises(DimosStreamsError, match=r"^the journal .* can't be read: "):
            kept_events(path, "a")
