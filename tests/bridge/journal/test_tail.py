"""What a journal keeps before its database has it: safe from the end of the process, and seen by all who read."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.fleet.shipping.older_journal import OlderJournal
from dimos_streams.journal import tables
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.catch_up import JournalPages
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.files.tail import left_in_tail
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event
from tests.helpers import run_virtual

ALL = 1 << 30


def seqs(entries: list[EncodedEntry]) -> list[tuple[int, int]]:
    return [(entry.offset, entry.event.seq) for entry in entries]


def in_file(path: Path) -> list[int]:
    """The offsets that the database itself has."""
    with sqlite3.connect(path) as db:
        found = [offset for (offset,) in db.execute("SELECT offset FROM events ORDER BY offset")]
    db.close()
    return found


def kept(path: Path, opened: OpenJournal) -> Journal:
    """A journal whose third event is in the tail only, as a process leaves it that is killed at that moment."""
    journal = opened(path)
    journal.append([event(1, "open"), event(2)])
    assert seqs(journal.keep([event(3, text="Grüße\n\u2028")])) == [(3, 3)]
    assert in_file(path) == [1, 2]
    return journal


def test_what_was_kept_outlives_the_process_and_comes_once(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    kept(path, opened)
    again = opened(path)
    assert (again.last_offset, again.resumed_at, in_file(path)) == (3, 3, [1, 2, 3])
    assert again.read(Query(2), 10, ALL).entries[0].event.text == "Grüße\n\u2028"
    assert seqs(again.keep([event(4), event(5)])) == [(4, 4), (5, 5)]
    third = opened(path)
    assert seqs(third.read(Query(0), 10, ALL).entries) == [(offset, offset) for offset in range(1, 6)]


def test_the_first_event_beside_a_file_that_was_moved_aside_outlives_the_process(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    path.with_name(f"{path.name}.left-1").touch()
    (first,) = opened(path).keep([event(1)])
    again = opened(path)
    assert seqs(again.read(Query(first.offset - 1), 10, ALL).entries) == [(first.offset, 1)]


def test_the_database_has_it_after_a_commit_and_the_tail_is_not_taken_in_again(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    journal.commit_tail()
    assert in_file(path) == [1, 2, 3]
    assert opened(path).last_offset == 3


@pytest.mark.parametrize(
    "look",
    [
        lambda journal: len(journal.read(Query(0), 10, ALL).entries),
        lambda journal: 3 if journal.size() else 0,
        lambda journal: journal.append([event(4)])[0].offset - 1,
        lambda journal: journal.keep([event(4)])[0].offset - 1,
        lambda journal: journal.close() or 3,
    ],
    ids=["read", "size", "append", "keep", "close"],
)
def test_whoever_comes_next_finds_it_in_the_database(
    look: Callable[[Journal], int], tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    assert look(journal) == 3
    assert in_file(path)[:3] == [1, 2, 3]


def test_pages_that_a_thread_reads_have_it(tmp_path: Path, opened: OpenJournal) -> None:
    async def scenario() -> None:
        pages = JournalPages(kept(tmp_path / "journal.sqlite", opened))
        assert seqs((await pages.page(Query(0))).entries) == [(1, 1), (2, 2), (3, 3)]
        pages.close()

    asyncio.run(scenario())


def test_it_is_shipped_with_the_journal_of_a_run_that_was_killed(tmp_path: Path, opened: OpenJournal) -> None:
    async def scenario(path: Path) -> tuple[OlderJournal, list[EncodedEntry]]:
        older = OlderJournal(path)
        await older.open()
        return older, (await older.read(2)).entries

    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    journal.tail.uncommitted = []  # its process is no more
    older, entries = asyncio.run(scenario(path))
    assert (older.last_offset, older.identity) == (3, journal.identity)
    assert seqs(entries) == [(3, 3)]


@pytest.fixture
def ledger(tmp_path: Path, opened: OpenJournal) -> Ledger:
    journal = opened(tmp_path / "journal.sqlite")
    return Ledger(JournalBroadcast(journal))


TYPES = ("open", "update", "update", "progress", "update")


@pytest.mark.parametrize("apart_s", [0.0, 0.001])
def test_what_is_entered_close_together_is_in_the_database_at_once(
    tmp_path: Path, ledger: Ledger, apart_s: float
) -> None:
    path = tmp_path / "journal.sqlite"

    async def scenario() -> None:
        for seq, type in enumerate(TYPES, start=1):
            ledger.enter([event(seq, type)])  # type: ignore[arg-type]
            assert in_file(path) == list(range(1, seq + 1))
            await asyncio.sleep(apart_s)

    run_virtual(scenario())
    assert path.with_name("journal.sqlite-tail").read_bytes().startswith(ledger.journal.identity.journal_id.encode())


def test_what_comes_alone_is_safe_at_once_and_in_the_database_a_moment_behind_its_readers(
    tmp_path: Path, ledger: Ledger, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    taken: list[int] = []

    def take(page: list[EncodedEntry]) -> bool:
        taken.extend(entry.offset for entry in page)
        return True

    async def scenario() -> None:
        reader = ledger.broadcast.reader(take=take)
        waiting = asyncio.create_task(reader.page())
        await asyncio.sleep(0)
        for seq, type in enumerate(TYPES, start=1):
            ledger.enter([event(seq, type)])  # type: ignore[arg-type]
            assert taken == list(range(1, seq + 1))
            if seq > 2:  # which neither begins its call nor answers it
                assert in_file(path) == list(range(1, seq))
                assert left_in_tail(path, ledger.journal.identity.journal_id, seq - 1)[0][0] == seq
            await asyncio.sleep(0.005)
            assert in_file(path) == list(range(1, seq + 1))
        reader.close()
        await waiting

    run_virtual(scenario())
    assert opened(path).last_offset == len(TYPES)


def test_a_journal_that_is_closed_before_that_moment_has_it(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "journal.sqlite"

    async def scenario() -> None:
        for seq, type in enumerate(TYPES[:3], start=1):
            ledger.enter([event(seq, type)])  # type: ignore[arg-type]
            await asyncio.sleep(0.005 if seq < 3 else 0)
        assert in_file(path) == [1, 2]
        ledger.journal.close()
        assert in_file(path) == [1, 2, 3]
        await asyncio.sleep(0.01)

    run_virtual(scenario())


def test_what_is_asked_of_a_closed_journal_does_not_count_as_a_failing_disk(
    tmp_path: Path, ledger: Ledger, opened: OpenJournal
) -> None:
    journal = ledger.journal

    async def scenario() -> None:
        for seq in range(1, 513):  # so many that it would be trimmed
            ledger.enter([event(seq, "open" if seq == 1 else "update")])
            await asyncio.sleep(0.005 if seq < 512 else 0)
        journal.close()
        await asyncio.sleep(0.01)

    run_virtual(scenario())
    journal.commit_tail()
    journal.trim()
    journal.note("a", "b")
    assert (journal.size(), journal.call("c"), journal.calls(5)) == (0, None, [])
    assert journal.read(Query(0), 5, 1000).entries == []
    assert journal.state == "ok"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.sqlite", "journal.sqlite-tail"]
    journal.close()
    assert opened(tmp_path / "journal.sqlite").last_offset == 512


def test_a_journal_is_trimmed_whoever_has_the_database_take_events_in(tmp_path: Path, opened: OpenJournal) -> None:
    journal = opened(tmp_path / "journal.sqlite", events=100)
    for seq in range(1, 2000):
        journal.keep([event(seq)])
        journal.size()  # by which the database has it
    assert journal.last_offset - journal.first_offset < 100 + 512


def test_one_that_is_not_whole_is_none(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    kept(path, opened)
    tail = path.with_name("journal.sqlite-tail")
    whole = tail.read_bytes()
    for damaged in (b"", whole[:-1], whole[: len(whole) // 2], whole.replace(b'"seq":3', b'"seq":4'), b"\0" * 500):
        tail.write_bytes(damaged)
        again = opened(path)
        assert (again.last_offset, again.state) == (2, "ok")
        again.close()


def test_one_of_another_journal_or_behind_a_gap_is_none(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    tail = path.with_name("journal.sqlite-tail")
    whole = tail.read_bytes()
    journal.close()
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM events WHERE offset > 1")  # as after a power cut
    db.close()
    tail.write_bytes(whole)
    assert opened(path).last_offset == 1
    other = tmp_path / "other" / "journal.sqlite"
    opened(other).append([event(1), event(2)])
    other.with_name("journal.sqlite-tail").write_bytes(whole)
    assert opened(other).last_offset == 2


def test_where_the_database_fails_memory_goes_on_with_it(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = kept(tmp_path / "journal.sqlite", opened)
    write, calls = tables.write, 0

    def fail_once(db: sqlite3.Connection, rows: list[tables.Row], calls_: object = ()) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise sqlite3.OperationalError("database or disk is full")
        write(db, rows)

    monkeypatch.setattr(tables, "write", fail_once)
    journal.commit_tail()
    assert journal.state == "memory: database or disk is full"
    assert (journal.first_offset, journal.last_offset) == (3, 3)
    assert seqs(journal.keep([event(4)])) == [(4, 4)]
    assert seqs(journal.read(Query(0), 10, ALL).entries) == [(3, 3), (4, 4)]


def test_where_the_tail_fails_the_database_has_it_at_once(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: len(data) - 1)
    assert seqs(journal.keep([event(4)])) == [(4, 4)]
    assert in_file(path) == [1, 2, 3, 4]


def test_a_tail_that_has_failed_is_done_without_and_said_so_once(
    tmp_path: Path, opened: OpenJournal, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)

    def full(file: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    for seq in range(1, 4):
        assert seqs(journal.keep([event(seq)])) == [(seq, seq)]
        assert in_file(path) == list(range(1, seq + 1))
    assert caplog.text.count("it is done without") == 1


def _broken(*args: object) -> bytes:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_tail_that_cannot_be_emptied_is_done_without(
    tmp_path: Path, opened: OpenJournal, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    kept(path, opened)
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", _broken)
        journal = opened(path)
    assert (journal.state, journal.last_offset, journal.tail.is_open) == ("ok", 3, False)
    assert "it is done without" in caplog.text
    assert seqs(journal.keep([event(4)])) == [(4, 4)]
    assert in_file(path) == [1, 2, 3, 4]


def test_where_nobody_knows_what_is_in_the_tail_no_offset_of_it_is_used_again(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    before = kept(path, opened).identity
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", _broken)
        journal = opened(path)
    assert journal.state == f"memory: {path}-tail can't be read: [Errno 5] Input/output error"
    assert journal.identity.journal_id != before.journal_id
    (entry,) = journal.keep([event(4)])
    assert entry.offset == journal.first_offset > 3
    assert journal.come_back()
    assert (in_file(path), journal.state) == ([entry.offset], "ok")
    assert len([*tmp_path.glob("journal.sqlite.left-*")]) > 0


def test_what_a_process_that_was_killed_has_left_is_in_memory_if_the_disk_is_full(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    kept(path, opened)
    write, refused = tables.write, False

    def fail_once(db: sqlite3.Connection, rows: list[tables.Row]) -> None:
        nonlocal refused
        if not refused:
            refused = True
            raise sqlite3.OperationalError("database or disk is full")
        write(db, rows)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write", fail_once)
        journal = opened(path)
    assert journal.state == "memory: database or disk is full"
    assert (journal.first_offset, journal.last_offset) == (3, 3)
    assert seqs(journal.keep([event(4)])) == [(4, 4)]
    assert seqs(journal.read(Query(0), 10, ALL).entries) == [(3, 3), (4, 4)]


@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder"])
def test_what_is_no_file_is_no_tail_and_is_neither_waited_for_nor_written(
    what: str, tmp_path: Path, opened: OpenJournal
) -> None:
    path, tail = tmp_path / "journal.sqlite", tmp_path / "journal.sqlite-tail"
    opened(path).close()
    tail.unlink()
    mine = tmp_path / "mine.txt"
    mine.write_text("precious")
    if what == "a link":
        tail.symlink_to(mine)
    elif what == "a pipe":
        os.mkfifo(tail)
    else:
        tail.mkdir()
    journal = opened(path)
    assert seqs(journal.keep([event(1)])) == [(1, 1)]
    assert (journal.state, in_file(path), mine.read_text()) == ("ok", [1], "precious")


def forged(journal_id: str, *rows: tuple[int, int, dict[str, object]]) -> bytes:
    """A tail with made-up rows, whole as far as its checksum goes."""
    lines = b"\n".join(b"%d %d %b" % (offset, utime, json.dumps(body).encode()) for offset, utime, body in rows)
    return b"%b %d %d\n%b" % (journal_id.encode(), zlib.crc32(lines), len(lines), lines)


@pytest.mark.parametrize(
    "change",
    [{"offset": 2**63}, {"utime": 2**63}, {"seq": 2**31}, {"seq": -1}, {"event_utime": 2**64}],
    ids=str,
)
def test_a_tail_with_numbers_that_no_journal_has_is_none(
    change: dict[str, int], tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    journal_id = journal.identity.journal_id
    journal.close()
    body = event(4).to_dict() | {"seq": change.get("seq", 4), "utime": change.get("event_utime", 1)}
    rows = [(4, 1, event(4).to_dict()), (change.get("offset", 5), change.get("utime", 1), body)]
    path.with_name("journal.sqlite-tail").write_bytes(forged(journal_id, *rows))
    assert (opened(path).last_offset, opened(path).state) == (3, "ok")


@pytest.mark.parametrize("offsets", [(4, 4), (4, 900_000), (4, 6)], ids=str)
def test_a_tail_whose_offsets_do_not_follow_each_other_is_none(
    offsets: tuple[int, ...], tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    journal_id = journal.identity.journal_id
    journal.close()
    rows = [(offset, 1, event(seq).to_dict()) for seq, offset in enumerate(offsets, start=4)]
    path.with_name("journal.sqlite-tail").write_bytes(forged(journal_id, *rows))
    assert opened(path).last_offset == 3


_SECOND = """
import sys
from pathlib import Path
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from tests.bridge.scene import event
journal = Journal(Path(sys.argv[1]))
journal.open()
journal.append([event(1, "open", call_id="another")])
print(journal.state, journal.tail.is_anothers)
journal.close()
"""


@pytest.mark.slow
def test_a_journal_that_another_process_writes_stays_its_own(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _SECOND, path], cwd=root, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == f"memory: another process writes the journal {path} True\n"
    assert sorted(each.name for each in tmp_path.glob("*left*")) == []
    assert seqs(journal.keep([event(4)])) == [(4, 4)]
    journal.close()
    after = subprocess.run(
        [sys.executable, "-c", _SECOND, path], cwd=root, capture_output=True, text=True, timeout=30, check=True
    )
    assert after.stdout == "ok False\n", "whoever ends lets go of it"
    assert in_file(path) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_who_comes_back_from_a_full_disk_leaves_a_file_that_is_anothers_by_then(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = kept(path, opened)
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    journal.fall_back(full)
    script = _SECOND.replace("journal.close()", "sys.stdout.flush(); input(); journal.close()")
    other = subprocess.Popen(
        [sys.executable, "-c", script, path],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "ok False\n"
        before = sorted(each.name for each in tmp_path.iterdir())
        assert not journal.come_back()
        assert sorted(each.name for each in tmp_path.iterdir()) == before
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.wait(20) == 0
    assert journal.come_back()
    assert seqs(journal.read(Query(journal.first_offset - 1), 10, ALL).entries) == [(3, 3)]
