from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dimos_streams.common import boot_time
from dimos_streams.journal import tables
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from dimos_streams.journal.tables import CallRow
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

ALL = 1 << 30
"""Bytes; more than there are."""


def offsets(entries: list[EncodedEntry]) -> list[int]:
    return [entry.offset for entry in entries]


def test_offsets_grow_and_survive_a_restart(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "run" / "journal.sqlite"
    journal = opened(path)
    assert (journal.first_offset, journal.last_offset) == (1, 0)
    assert offsets(journal.append([event(1, "open"), event(2)])) == [1, 2]
    journal.close()
    journal.close()

    again = opened(path)
    assert (again.first_offset, again.last_offset, again.state) == (1, 2, "ok")
    assert offsets(again.append([event(3, "update", text="Grüße\n\u2028")])) == [3]
    read = again.read(Query(0), 10, ALL).entries
    assert [(entry.offset, entry.event.seq) for entry in read] == [(1, 1), (2, 2), (3, 3)]
    assert read[2].event.text == "Grüße\n\u2028"
    assert b"\n" not in read[2].body
    again.close()


def test_one_event_too_many_is_dropped(opened: OpenJournal) -> None:
    journal = opened(events=3)
    journal.append([event(seq) for seq in range(1, 5)])
    journal.trim()
    assert (journal.first_offset, journal.last_offset) == (2, 4)
    assert offsets(journal.read(Query(0), 10, ALL).entries) == [2, 3, 4]


def test_rows_are_read_until_there_are_as_many_bytes_as_are_wanted(opened: OpenJournal) -> None:
    journal = opened()
    size = len(journal.append([event(seq) for seq in range(1, 6)])[0].body)
    found = [
        [row[0] for row in tables.rows_after(journal.database, 1, most, most_bytes)]
        for most, most_bytes in ((2, ALL), (9, 2 * size), (9, 2 * size + 1), (9, 1))
    ]
    assert found == [[2, 3], [2, 3], [2, 3, 4], [2]]


def test_a_process_that_is_killed_loses_nothing_that_was_appended(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1, "open"), event(2)])
    # Not closed: what the operating system has is what a killed process leaves.
    assert opened(path).last_offset == 2


def test_read_filters_and_pages(opened: OpenJournal) -> None:
    journal = opened()
    for number in range(1, 101):
        journal.append([event(number, call_id=f"c{number % 4}", caller="a" if number % 2 else "b")])
    assert offsets(journal.read(Query(0), 5, ALL).entries) == [1, 2, 3, 4, 5]
    assert offsets(journal.read(Query(90, caller="b"), 100, ALL).entries) == [92, 94, 96, 98, 100]
    assert offsets(journal.read(Query(0, call_id="c3"), 2, ALL).entries) == [3, 7]
    assert journal.read(Query(0, call_id="c3"), 2, ALL).upto == 7
    assert journal.read(Query(0, call_id="nobody"), 10, ALL).upto == 100


@pytest.mark.slow
def test_a_rare_event_is_found_in_bounded_steps(opened: OpenJournal) -> None:
    journal = opened(events=50_000)
    journal.append([event(number) for number in range(1, 20_001)])
    journal.append([event(1, call_id="rare")])
    found: list[EncodedEntry] = []
    after = steps = 0
    while not found:
        found, after, _ = journal.read(Query(after, call_id="rare"), 10, ALL)
        steps += 1
    assert offsets(found) == [20_001]
    assert steps == 5


@pytest.mark.slow
def test_count_and_size_are_bounded_and_offsets_go_on(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path, events=1000)
    for start in range(0, 10_000, 100):
        journal.append([event(start + index + 1) for index in range(100)])
    kept = journal.last_offset - journal.first_offset + 1
    assert 1000 <= kept <= 1000 + 512 + 100
    assert offsets(journal.read(Query(0), 1, ALL).entries) == [journal.first_offset]
    journal.close()
    again = opened(path)
    assert (again.first_offset, again.last_offset) == (journal.first_offset, 10_000)
    again.close()

    small = opened(bytes=1024 * 1024)
    for number in range(200):
        small.append([event(number + 1, text="x" * 40_000)] * 10)
        small.trim()
    assert small.size() < 3 * 1024 * 1024
    assert small.last_offset == 2000


@dataclass
class _Times:
    """The clocks of a robot, which may be set, and on which time passes."""

    wall_s: float
    steady_s: float = 500.0

    def pass_(self, seconds: float) -> None:
        self.wall_s += seconds
        self.steady_s += seconds


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> _Times:
    made = _Times(1_700_000_000)
    monkeypatch.setattr("dimos_streams.clock.utime", lambda: int(made.wall_s * 1e6))
    monkeypatch.setattr("dimos_streams.clock.steady", lambda: made.steady_s)
    return made


def test_age_is_bounded(times: _Times, opened: OpenJournal) -> None:
    journal = opened(age_s=60.0)
    journal.append([event(1), event(2)])
    times.pass_(50)
    journal.append([event(3)])
    journal.trim()
    assert journal.first_offset == 1
    times.pass_(20)
    journal.trim()
    assert journal.first_offset == 3
    times.pass_(3600)
    journal.trim()
    assert journal.first_offset == 3, "the newest event stays, so that offsets go on behind it"


def test_what_came_before_the_clock_was_set_is_as_old_as_that(times: _Times, opened: OpenJournal) -> None:
    times.wall_s = 1000.0  # as of a robot that does not know the time when it is switched on
    journal = opened(age_s=60.0)
    journal.append([event(1), event(2)])
    times.pass_(5)
    times.wall_s += 1_700_000_000
    journal.trim()
    journal.append([event(3), event(4)])
    times.pass_(50)
    journal.trim()
    assert journal.first_offset == 1
    times.pass_(20)
    journal.trim()
    assert journal.first_offset == 4


def test_what_a_robot_wrote_that_did_not_know_the_time_is_not_old_after_a_restart(
    tmp_path: Path, times: _Times, opened: OpenJournal
) -> None:
    times.wall_s = 1000.0
    before = opened(tmp_path / "journal.sqlite", age_s=60.0)
    before.append([event(1), event(2)])
    before.close()
    times.wall_s += 1_700_000_000
    journal = opened(tmp_path / "journal.sqlite", age_s=60.0)
    journal.trim()
    assert journal.first_offset == 1
    journal.append([event(3), event(4)])
    times.pass_(70)
    journal.trim()
    assert journal.first_offset == 4, "they are older than what is too old"


def test_what_came_before_the_clock_was_set_is_as_old_as_that_after_restarts_too(
    tmp_path: Path, times: _Times, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot_time, "boot_id", lambda: "one")
    path = tmp_path / "journal.sqlite"
    before = opened(path, age_s=60.0)
    before.append([event(1, "open"), event(2)])
    before.close()
    times.wall_s += 86_400.0  # while no process runs that could see it
    for _ in range(2):  # the second process finds the clock as the first one has noted it
        journal = opened(path, age_s=60.0)
        journal.trim()
        assert journal.first_offset == 1
        journal.close()
        times.pass_(25)
    monkeypatch.setattr(boot_time, "boot_id", lambda: "another")  # and a steady clock that says nothing of before
    journal = opened(path, age_s=60.0)
    journal.trim()
    assert journal.first_offset == 2
    journal.close()


def test_calls_are_kept_with_their_newest_seq(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path, events=1000, closed_calls=5)
    journal.append([event(1, "open", call_id="long")], [CallRow("long", 1, False, "{}")])
    journal.append([event(2, call_id="long")])
    for number in range(20):
        journal.append([], [CallRow(f"short{number}", 2, True, "{}")])
    journal.append([event(seq, call_id="other") for seq in range(1, 5001)])
    for _ in range(10):
        journal.trim()
    assert journal.first_offset > 2
    journal.close()

    again = opened(path)
    rows = again.calls(closed=3)
    assert [row.call_id for row in rows] == ["long", "short17", "short18", "short19"]
    assert rows[0].last_seq == 2, "its events were trimmed, how far it got was not forgotten"
    again.append([event(3, call_id="long")])
    assert [row.last_seq for row in again.calls(closed=1)] == [3, 2], "of an open one that of its newest event"
    assert again.call("short19") == CallRow("short19", 2, True, "{}")
    assert again.call("short0") is None
    again.close()


def test_a_damaged_file_is_moved_aside(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is no database, and long enough to be taken for one" * 100)
    journal = opened(path)
    assert journal.state == "ok"
    assert len(list(tmp_path.glob("journal.sqlite.damaged-*"))) == 1
    # No offset can be one that a reader of the damaged journal stands at.
    (offset,) = offsets(journal.append([event(1)]))
    assert 10**15 < offset < 2**53
    assert journal.first_offset == offset
    journal.close()


def test_a_damaged_file_in_whose_place_none_can_be_made_is_memory(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is no database, and long enough to be taken for one" * 100)
    open_file = tables.open_file

    def open_if_there(path: Path) -> sqlite3.Connection:
        if not path.exists():
            raise sqlite3.OperationalError("unable to open database file")
        return open_file(path)

    monkeypatch.setattr(tables, "open_file", open_if_there)
    journal = opened(path)
    assert journal.state == "memory: unable to open database file"
    (offset,) = offsets(journal.append([event(1)]))
    assert offset > 10**15


def test_damage_that_shows_in_mid_run_goes_on_in_memory_at_the_next_offset(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(number) for number in range(1, 2001)])
    journal.close()
    third = path.stat().st_size // 3 // 4096 * 4096
    with path.open("r+b") as file:
        file.seek(third)
        file.write(b"\xff" * 8 * 4096)
    journal = opened(path)
    assert (journal.state, journal.last_offset) == ("ok", 2000)
    after = 0
    while journal.state == "ok":
        after = journal.read(Query(after), 100, ALL).upto
    assert journal.state == "memory: database disk image is malformed"
    assert offsets(journal.append([event(2001)])) == [2001]
    assert (journal.first_offset, journal.last_offset) == (2001, 2001)
    assert len(list(tmp_path.glob("journal.sqlite.damaged-*"))) == 1
    journal.close()


def test_a_full_disk_goes_on_in_memory(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    journal.database.execute("PRAGMA max_page_count=4")  # what SQLite says is what it says of a full disk
    for seq in range(2, 200):
        journal.append([event(seq, text="x" * 1000)])
    assert journal.state == "memory: database or disk is full"
    assert journal.last_offset == 199
    assert journal.first_offset > 1
    assert offsets(journal.read(Query(198), 5, ALL).entries) == [199]
    journal.close()


def _fill_the_disk(journal: Journal) -> None:
    journal.database.execute("PRAGMA max_page_count=4")
    for seq in range(2, 200):
        journal.append([event(seq, text="x" * 1000)])
    assert journal.state == "memory: database or disk is full"


def test_a_file_that_another_program_holds_is_memory_until_it_lets_go(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        journal.database.execute("PRAGMA busy_timeout=1")
        assert [entry.offset for entry in journal.append([event(2)])] == [2]
        assert "locked" in journal.state
    assert journal.come_back()
    assert [entry.offset for entry in journal.append([event(3)])] == [3]
    assert (journal.state, journal.path, journal.last_offset) == ("ok", path, 3)


@pytest.mark.parametrize("beside", ["", "-tail", "-wal"])
def test_a_file_that_is_deleted_is_written_anew(
    beside: str, tmp_path: Path, opened: OpenJournal, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    identity = journal.identity
    journal.append([event(1), event(2)])
    journal.look_for_file()
    assert journal.state == "ok"
    path.unlink()
    path.with_name(path.name + beside).unlink(missing_ok=True)
    journal.keep([event(3)])
    journal.look_for_file()
    assert (journal.state, "was deleted" in caplog.text) == ("a deleted file", True)
    assert offsets(journal.read(Query(0), 5, ALL).entries) == [1, 2, 3]
    assert journal.come_back()
    journal.keep([event(4)])
    assert (journal.state, journal.path, journal.identity) == ("ok", path, identity)
    journal.look_for_file()
    assert journal.state == "ok"
    journal.close()
    again = opened(path)
    assert offsets(again.read(Query(0), 5, ALL).entries) == [1, 2, 3, 4]
    assert again.identity == identity


def test_a_deleted_file_in_whose_place_none_can_be_made_is_served_on(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "run" / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    shutil.rmtree(path.parent)
    journal.look_for_file()
    assert not journal.come_back()
    journal.keep([event(2)])
    assert (journal.state, offsets(journal.read(Query(0), 5, ALL).entries)) == ("a deleted file", [1, 2])
    path.parent.mkdir()
    assert journal.come_back()
    journal.close()
    assert offsets(opened(path).read(Query(0), 5, ALL).entries) == [1, 2]


def test_a_file_that_is_held_from_the_beginning_is_left_where_it_is(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN EXCLUSIVE")
        journal = opened(path)
        assert "locked" in journal.state
    assert not journal.come_back()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_memory_in_the_place_of_a_file_is_bounded_whether_or_not_it_can_come_back(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.journal.journal._MEMORY_BYTES", 1024 * 1024)
    kept = {}
    for error in (sqlite3.OperationalError("full"), sqlite3.DatabaseError("malformed")):
        error.sqlite_errorcode = sqlite3.SQLITE_FULL if "full" in str(error) else sqlite3.SQLITE_CORRUPT
        journal = opened(tmp_path / f"{error}.sqlite")
        journal.append([event(1)])
        journal.fall_back(error)
        for number in range(100):
            journal.append([event(number + 2, text="x" * 40_000)])
            journal.trim()
        kept[str(error)] = journal.size()
    assert all(size < 2 * 1024 * 1024 for size in kept.values()), kept


def test_notes_outlive_a_full_disk(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.note("a/1", "one")
    journal.note("a/2", "two")
    _fill_the_disk(journal)
    assert journal.notes("a/") == {"a/1": "one", "a/2": "two"}
    journal.note("a/1", None)
    journal.note("a/3", "three")
    assert journal.come_back()
    journal.close()
    assert opened(path).notes("a/") == {"a/2": "two", "a/3": "three"}


def test_a_note_that_finds_the_disk_full_is_kept(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.note("a/1", "one")
    journal.database.execute("PRAGMA max_page_count=4")
    journal.note("a/2", "x" * 100_000)
    assert journal.state == "memory: database or disk is full"
    assert journal.come_back()
    journal.close()
    assert {name: len(value) for name, value in opened(path).notes("a/").items()} == {"a/1": 3, "a/2": 100_000}


def test_a_bridge_that_ends_while_the_disk_is_full_has_noted_what_was_before(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.note("a/1", "one")
    _fill_the_disk(journal)
    journal.close()
    assert opened(path).notes("a/") == {"a/1": "one"}, "out of the file that was moved aside"


def test_a_journal_is_another_one_where_an_offset_may_mean_another_event(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    first = journal.identity
    assert first.begin == 1
    journal.close()
    journal = opened(path)
    assert journal.identity == first, "it is the same after a restart"
    journal.database.execute("PRAGMA max_page_count=4")
    for seq in range(2, 200):
        journal.append([event(seq, text="x" * 1000)])
    in_memory = journal.identity
    assert in_memory.journal_id != first.journal_id
    assert in_memory.begin == journal.first_offset > 1
    assert journal.come_back()
    assert journal.identity == in_memory, "the new file has all that memory had, at the same offsets"
    journal.close()
    assert opened(path).identity == in_memory
    assert opened(tmp_path / "other.sqlite").identity.journal_id not in {first.journal_id, in_memory.journal_id}


def test_a_path_that_cannot_be_written_is_memory(tmp_path: Path, opened: OpenJournal) -> None:
    (tmp_path / "file").write_text("")
    journal = opened(tmp_path / "file" / "journal.sqlite")
    assert journal.state.startswith("memory: ")
    assert offsets(journal.append([event(1)])) == [1]


def test_another_programs_database_is_left_alone(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE precious (a)")
    db.close()
    journal = opened(path)
    assert journal.state == f"memory: {path} is another program's database"
    journal.append([event(1)])
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    db.close()


def test_a_name_that_no_file_can_have_is_memory(tmp_path: Path, opened: OpenJournal) -> None:
    journal = opened(tmp_path / ("j" * 300))
    assert journal.state == "memory: unable to open database file"
    assert offsets(journal.append([event(1)])) == [1]


def test_a_folder_that_cannot_be_read_costs_only_what_was_moved_aside_there(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path, pattern: str) -> Iterator[Path]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "glob", broken)
    journal = opened(tmp_path / "journal.sqlite")
    assert journal.state == "ok"
    assert offsets(journal.append([event(1)])) == [1]
