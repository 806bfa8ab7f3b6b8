"""Readers that catch up from a journal on disk: their reads are bounded, shared, in a thread, and hold nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams.journal import catch_up as history
from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.journal.broadcast_reader import BroadcastReader
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.limits import JournalLimits
from dimos_streams.journal.query import Query, Read
from tests.bridge.scene import event
from tests.helpers import no_threads, until

EVENTS = 400
SIZE = 5_000


@contextlib.asynccontextmanager
async def made(
    tmp_path: Path, *, events: int = EVENTS, size: int = SIZE, keep: int = 100_000
) -> AsyncIterator[JournalBroadcast]:
    """A hub on a journal in a file, with events of which it has none in memory but the newest."""
    journal = Journal(tmp_path / "journal.sqlite", JournalLimits(events=keep))
    journal.open()
    broadcast = JournalBroadcast(journal, BroadcastLimits(ring_events=16))
    for seq in range(1, events + 1):
        put(broadcast, seq, "x" * size)
    try:
        yield broadcast
    finally:
        broadcast.close()
        broadcast.close()
        journal.close()


def put(broadcast: JournalBroadcast, seq: int, text: str = "") -> None:
    broadcast.publish(broadcast.journal.append([event(seq, call_id=f"c{seq % 2}", text=text)]))


async def read_up_to(reader: BroadcastReader, offset: int) -> list[EncodedEntry]:
    found: list[EncodedEntry] = []
    while not found or found[-1].offset < offset:
        found += await reader.page()
    return found


def offsets(entries: list[EncodedEntry]) -> list[int]:
    return [entry.offset for entry in entries]


class Held:
    """Reads of files that wait, before or after they have read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.threads: set[str] = set()
        read = history._File.read

        def waiting(file: history._File, path: tuple[Path, int], query: Query, last: int, *bounds: int) -> Read:
            self.threads.add(threading.current_thread().name)
            found = read(file, path, query, last, *bounds) if after else None
            self.begun.set()
            assert self.go.wait(10)
            return found or read(file, path, query, last, *bounds)

        monkeypatch.setattr(history._File, "read", waiting)


def test_a_page_is_bounded_in_bytes(tmp_path: Path) -> None:
    async def check() -> None:
        async with made(tmp_path, events=100) as broadcast:
            read = await broadcast.pages.page(Query(0))
            assert sum(len(entry.body) for entry in read.entries) <= PAGE_BYTES
            assert offsets(read.entries) == list(range(1, read.upto + 1))
        async with made(tmp_path / "large", events=20, size=100_000) as broadcast:
            read = await broadcast.pages.page(Query(0))
            assert (offsets(read.entries), read.upto) == ([1], 1), "one that is larger comes alone"

    asyncio.run(check())


@pytest.mark.slow
@pytest.mark.feature("A3")
def test_ten_readers_share_what_one_has_read(tmp_path: Path) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            starts = [0, 0, 0, 0, 0, 0, 0, 3, 50, 51]
            readers = [broadcast.reader(after=after) for after in starts]
            found = await asyncio.gather(*(read_up_to(reader, EVENTS) for reader in readers))
            assert [offsets(each) for each in found] == [list(range(after + 1, EVENTS + 1)) for after in starts]
            alone = EVENTS * SIZE / PAGE_BYTES
            assert broadcast.pages.reads <= 2 * alone, "not ten times as many"

    asyncio.run(check())


@pytest.mark.slow
@pytest.mark.feature("A3")
@pytest.mark.parametrize("kept", [16, 8192], ids=["from the journal", "from memory"])
def test_the_loop_has_its_turn_between_any_two_pages(tmp_path: Path, kept: int) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            broadcast = JournalBroadcast(broadcast.journal, BroadcastLimits(ring_events=kept))
            for seq in range(1, EVENTS + 1):
                put(broadcast, seq, "x" * SIZE)
            pages = before = most = 0

            def turn() -> None:
                nonlocal before, most
                most, before = max(most, pages - before), pages
                loop.call_soon(turn)

            async def read(reader: BroadcastReader) -> None:
                nonlocal pages
                while reader.lag:
                    await reader.page()
                    pages += 1

            loop = asyncio.get_running_loop()
            loop.call_soon(turn)
            await asyncio.gather(*(read(broadcast.reader(after=EVENTS)) for _ in range(10)))
            assert pages >= 10 * EVENTS * SIZE / PAGE_BYTES
            assert most <= 2, "one that was in memory, and one that was read"
            broadcast.close()

    asyncio.run(check())


@pytest.mark.feature("A3")
def test_a_slow_disk_holds_up_only_who_reads_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with made(tmp_path, events=100) as broadcast:
            held = Held(monkeypatch, after=False)
            late, live = broadcast.reader(after=0), broadcast.reader()
            reading = asyncio.create_task(read_up_to(late, 110))
            await until(held.begun.is_set)
            for seq in range(101, 111):
                put(broadcast, seq)
                assert offsets(await live.page()) == [seq]
            assert not reading.done()
            held.go.set()
            assert offsets(await reading) == list(range(1, 111))
            assert held.threads == {"journal_0"}

    asyncio.run(check())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_what_is_trimmed_while_it_is_read_is_a_gap_or_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    async def check() -> None:
        async with made(tmp_path, events=1_000, size=10, keep=600) as broadcast:
            broadcast.journal.trim()
            first = broadcast.journal.first_offset
            held = Held(monkeypatch, after=after)
            reader = broadcast.reader(after=first - 1)
            reading = asyncio.create_task(reader.page())
            await until(held.begun.is_set)
            for seq in range(1_001, 1_301):
                put(broadcast, seq)
            broadcast.journal.trim()
            assert broadcast.journal.first_offset > first + PAGE
            held.go.set()
            page = await reading
            asked = first
            if after:
                asked = page[-1].offset + 1
                assert offsets(page) == list(range(first, asked))
                page = await reader.page()
            assert [(entry.type, entry.offset) for entry in page] == [("gap", broadcast.journal.first_offset - 1)]
            assert page[0].event.data["from_offset"] == asked
            assert offsets(await read_up_to(reader, 1_300)) == list(range(broadcast.journal.first_offset, 1_301))

    asyncio.run(check())


def test_who_gives_up_in_the_middle_of_a_read_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            held = Held(monkeypatch, after=True)
            reader = broadcast.reader(after=0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await reader.page()
            held.go.set()
            assert offsets(await read_up_to(reader, EVENTS)) == list(range(1, EVENTS + 1))

    asyncio.run(check())


def test_closing_ends_who_waits_for_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            held = Held(monkeypatch, after=False)
            readers = [broadcast.reader(after=0) for _ in range(5)]
            reading = [asyncio.create_task(reader.page()) for reader in readers]
            await until(held.begun.is_set)
            broadcast.close()
            held.go.set()
            found = await asyncio.gather(*reading)
            assert [len(page) for page in found].count(0) >= 4

            await until(lambda: not any(each.name.startswith("journal") for each in threading.enumerate()))

    asyncio.run(check())


def fails(*_: object) -> Read:
    raise sqlite3.OperationalError("disk I/O error")


def test_a_read_that_fails_is_tried_by_the_journal_which_knows_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            monkeypatch.setattr(history._File, "read", fails)
            reader = broadcast.reader(after=0)
            assert (await reader.page())[0].offset == 1
            database = broadcast.journal.db
            assert database is not None
            database.close()
            found = await read_up_to(reader, EVENTS)
            assert [entry.type for entry in found].count("gap") == 1
            assert broadcast.journal.state.startswith("memory")
            put(broadcast, EVENTS + 1)
            assert offsets(await reader.page()) == [EVENTS + 1]

    asyncio.run(check())


@pytest.mark.virtual_time
async def test_in_virtual_time_no_thread_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with made(tmp_path) as broadcast:
        monkeypatch.setattr(history._File, "read", fails)
        readers = [broadcast.reader(after=after) for after in (0, 0, 200)]
        found = await asyncio.gather(*(read_up_to(reader, EVENTS) for reader in readers))
        assert [len(each) for each in found] == [EVENTS, EVENTS, EVENTS - 200]


def test_filtered_readers_share_with_those_of_the_same_filter(tmp_path: Path) -> None:
    async def check() -> None:
        async with made(tmp_path) as broadcast:
            readers = [broadcast.reader(after=0, call_id=f"c{number % 2}") for number in range(4)]
            found = await asyncio.gather(*(read_up_to(reader, EVENTS - 1) for reader in readers))
            for number, each in enumerate(found):
                assert {entry.call_id for entry in each} == {f"c{number % 2}"}
                assert offsets(each)[:3] == [[2, 4, 6], [1, 3, 5]][number % 2]

    asyncio.run(check())


def test_without_a_thread_it_is_read_all_the_same(tmp_path: Path) -> None:
    async def first_page() -> list[int]:
        with no_threads():
            async with made(tmp_path, events=20, size=10) as broadcast:
                return offsets((await broadcast.older(Query(0))).entries)

    assert asyncio.run(first_page()) == [*range(1, 21)]


def test_who_has_read_a_file_that_was_deleted_goes_on_in_the_one_that_has_its_place(tmp_path: Path) -> None:
    async def check() -> None:
        async with made(tmp_path, events=4, size=1) as broadcast:
            journal, pages = broadcast.journal, broadcast.pages
            assert offsets((await pages.page(Query(0))).entries) == [1, 2, 3, 4]
            (tmp_path / "journal.sqlite").unlink()
            journal.look_for_file()
            put(broadcast, 5)
            assert await journal.homing.attempt(asyncio.to_thread)
            put(broadcast, 6)
            assert offsets((await pages.page(Query(4))).entries) == [5, 6]

    asyncio.run(check())
