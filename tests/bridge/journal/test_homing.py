"""A journal comes back into a file beside all that goes on: what is long is copied in a thread, in steps."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.journal.files.file_copy import FileCopy
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.limits import JournalLimits
from dimos_streams.journal.query import Query
from dimos_streams.journal.tables import CallRow, Row
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

pytestmark = pytest.mark.virtual_time

ALL = 10**9


async def inline(work: Callable[[], None]) -> None:
    await asyncio.sleep(0)
    work()


def offsets(journal: Journal) -> list[int]:
    return [entry.offset for entry in journal.read(Query(0), ALL, ALL).entries]


async def test_a_deleted_file_is_copied_in_steps_while_events_come_and_go(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal, write, on_loop = opened(path), FileCopy._write, []
    steps = 0

    def written(copy: FileCopy, rows: list[Row]) -> None:
        on_loop.append(len(rows))
        write(copy, rows)

    async def in_thread(work: Callable[[], None]) -> None:
        nonlocal steps
        steps += 1
        journal.append([event(5000 + steps)], [CallRow("c2", steps, False, "{}")])
        journal.trim()
        await inline(work)
        on_loop.pop()

    monkeypatch.setattr(FileCopy, "_write", written)
    journal.append([event(number) for number in range(1, 4501)], [CallRow("c1", 1, True, "{}")])
    journal.note("a/1", "one")
    path.unlink()
    journal.look_for_file()
    journal.limits = JournalLimits(events=4000)
    assert await journal.homing.attempt(in_thread)
    assert (journal.state, steps) == ("ok", 4)
    assert on_loop == [504], "the last step alone"
    kept = offsets(journal)
    assert kept == list(range(journal.first_offset, 4505))
    assert kept[0] > 500, "what was trimmed meanwhile stays away"
    assert [row.call_id for row in journal.calls(10)] == ["c1", "c2"]
    journal.close()
    again = opened(path)
    assert (offsets(again), again.identity, again.notes("")) == (kept, journal.identity, {"a/1": "one"})
    assert not path.with_name(f"{path.name}.new").exists()


async def test_a_journal_that_can_not_come_back_tries_it_less_and_less_often(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "run" / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    shutil.rmtree(path.parent)
    journal.look_for_file()
    for pause_s in (4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        assert not await journal.homing.attempt(inline)
        path.parent.mkdir()
        await asyncio.sleep(pause_s - 0.1)
        assert not await journal.homing.attempt(inline), "too soon"
        path.parent.rmdir()
        await asyncio.sleep(0.2)
    path.parent.mkdir()
    assert await journal.homing.attempt(inline)
    assert (journal.state, offsets(journal)) == ("ok", [1])


async def test_for_want_of_a_thread_a_journal_comes_back_later(tmp_path: Path, opened: OpenJournal) -> None:
    async def refused(work: Callable[[], None]) -> None:
        raise OSError(11, "no more threads")

    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(number) for number in range(1, 1201)])
    path.unlink()
    journal.look_for_file()
    assert not await journal.homing.attempt(refused)
    assert not path.with_name(f"{path.name}.new").exists()
    await asyncio.sleep(5.0)
    assert await journal.homing.attempt(inline)
    assert (journal.state, len(offsets(journal))) == ("ok", 1200)


async def test_a_copy_of_what_is_in_memory_by_now_takes_no_place(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(number) for number in range(1, 1201)])
    path.unlink()
    journal.look_for_file()

    async def fails(work: Callable[[], None]) -> None:
        work()
        journal.database.execute("PRAGMA max_page_count=1")
        journal.append([event(number, text="x" * 10_000) for number in range(1201, 1300)])

    assert not await journal.homing.attempt(fails)
    assert journal.state == "memory: database or disk is full"
    await asyncio.sleep(5.0)
    assert await journal.homing.attempt(inline)
    assert offsets(journal)[-1] == journal.last_offset == 1299
    assert not path.with_name(f"{path.name}.new").exists()


async def test_nothing_is_copied_to_where_another_process_has_its_journal(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(number) for number in range(1, 1201)])
    path.unlink()
    journal.look_for_file()
    monkeypatch.setattr("dimos_streams.journal.files.tail._is_locked", lambda _: False)

    async def never(work: Callable[[], None]) -> None:
        raise AssertionError("it is copied")

    assert not await journal.homing.attempt(never)
    assert (journal.state, len(offsets(journal))) == ("a deleted file", 1200)


async def test_a_copy_is_such_a_file_that_whoever_opens_it_does_not_wait_for_the_disk(
    tmp_path: Path, opened: OpenJournal
) -> None:
    journal = opened()
    journal.append([event(1)])
    FileCopy(tmp_path / "copy", journal.database).finish()
    assert os.listdir(tmp_path) == ["copy"]
    assert (tmp_path / "copy").read_bytes()[18:20] == b"\2\2", (
        "with a write-ahead log: the change to one is synchronized"
    )


async def test_a_copy_that_takes_no_place_is_removed(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])
    path.unlink()
    path.touch()
    journal.look_for_file()
    monkeypatch.setattr("dimos_streams.journal.files.file_copy.leave_behind", lambda _: None)
    assert not journal.come_back()
    assert path.name in os.listdir(tmp_path)
    assert f"{path.name}.new" not in os.listdir(tmp_path)
