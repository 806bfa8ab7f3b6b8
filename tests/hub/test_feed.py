"""Readers at a hub that has not read yet what another hub on its database has stored."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dimos_streams.hub.event_feed import EventFeed
from dimos_streams.hub.storage.rows import KeptRange, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads
from dimos_streams.journal.query import Query, QueryBack, Read
from tests.hub.stored import ALL, batch, numbered, opened


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[HubStorage]:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        yield storage


@contextlib.asynccontextmanager
async def behind(storage: HubStorage) -> AsyncIterator[EventFeed]:
    """The feed of a hub that has read up to number 3, where another one has stored up to 6."""
    storage.store([batch(*numbered(1, 3))])
    threads = HubThreads()
    feed = EventFeed(storage, threads, storage.bounds())
    storage.store([batch(*numbered(4, 6))])
    try:
        yield feed
    finally:
        feed.broadcast.close()
        await threads.close()


@contextlib.asynccontextmanager
async def at_work(feed: EventFeed) -> AsyncIterator[None]:
    running = asyncio.create_task(feed.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.feature("H2")
@pytest.mark.parametrize("robot", [None, "r1"])
@pytest.mark.parametrize("after", [4, 6])
def test_who_has_read_further_at_another_hub_goes_on_behind_that(
    after: int, robot: str | None, storage: HubStorage
) -> None:
    async def read() -> list[int]:
        async with behind(storage) as feed:
            reader = feed.broadcast.reader(after=after, robot=robot)
            reader.nudge()
            assert await reader.page() == [], "a ping, and no gap"
            assert reader.offset == after
            found: list[int] = []
            async with at_work(feed):
                storage.store([batch(*numbered(7, 8))])
                while not found or found[-1] < 8:
                    found += [entry.offset for entry in await reader.page()]
            assert feed.broadcast.statistics().gaps == 0
            return found

    assert asyncio.run(read()) == list(range(after + 1, 9))


@pytest.mark.feature("H2")
def test_a_reader_that_is_ahead_has_its_hub_read_on_at_once(
    storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read() -> None:
        async with behind(storage) as feed:
            woken = asyncio.Event()
            monkeypatch.setattr(feed._wakeup, "wake", woken.set)
            assert await feed.broadcast.may_have(6)
            assert woken.is_set()

    asyncio.run(read())


@pytest.mark.feature("H2")
def test_a_number_that_no_hub_has_given_is_of_another_journal(storage: HubStorage) -> None:
    async def read() -> None:
        async with behind(storage) as feed:
            reader = feed.broadcast.reader(after=7)
            (gap,) = await reader.page()
            assert (gap.type, gap.offset) == ("gap", 0)
            assert "another journal" in gap.event.text

    asyncio.run(read())


@pytest.mark.feature("H2")
@pytest.mark.parametrize("is_down", [False, True])
def test_nobody_is_told_of_another_journal_by_a_hub_whose_database_says_nothing(
    is_down: bool, storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def silent() -> KeptRange:
        if is_down:
            raise StorageUnavailableError("it is down")
        assert over.wait(10)
        return KeptRange(1, 6)

    async def read() -> None:
        async with behind(storage) as feed:
            reader = feed.broadcast.reader(after=6)
            monkeypatch.setattr("dimos_streams.hub.event_pages._LOOK_S", 0.01)
            with monkeypatch.context() as patched:
                patched.setattr(storage, "bounds", silent)
                reader.nudge()
                assert await reader.page() == []
                over.set()
            async with at_work(feed):
                storage.store([batch(*numbered(7, 7))])
                assert [entry.offset for entry in await reader.page()] == [7]

    asyncio.run(read())


@pytest.mark.feature("H2")
def test_pages_have_what_another_hub_has_stored(storage: HubStorage) -> None:
    async def read() -> list[int]:
        async with behind(storage) as feed:
            read = await feed.broadcast.pages.page_back(QueryBack(7), 4, ALL)
            return [entry.offset for entry in read.entries]

    assert asyncio.run(read()) == [3, 4, 5, 6]


@pytest.mark.feature("H2")
@pytest.mark.parametrize("numbers", [300, 5000])
def test_readers_pass_over_numbers_that_were_lost(numbers: int, storage: HubStorage) -> None:
    """A server that stands in for one that failed has events behind those that it lacks."""

    async def read() -> list[int]:
        async with behind(storage) as feed:
            reader = feed.broadcast.reader(after=3)
            with storage.engine.transaction() as db:
                db.run("UPDATE fleet SET last_seq = ?", 6 + numbers)
            storage.store([batch(*numbered(7, 8))])
            found: list[int] = []
            async with at_work(feed), asyncio.timeout(10):
                while len(found) < 5:
                    found += [entry.offset for entry in await reader.page()]
            return found

    assert asyncio.run(read()) == [4, 5, 6, 7 + numbers, 8 + numbers]


@pytest.mark.feature("H2")
def test_readers_wait_while_the_database_lacks_what_was_read_before(
    storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a server that stands in for another, until a hub has written there; asking at once is of no use."""
    monkeypatch.setattr("dimos_streams.hub.event_pages.AGAIN_S", 0.01)
    asked = 0
    read = storage.read

    def counted(query: Query, limit: int, max_bytes: int, last: int | None = None) -> Read:
        nonlocal asked
        asked += 1
        if asked == 3:
            with storage.engine.transaction() as db:
                db.run("UPDATE fleet SET last_seq = 6")
        return read(query, limit, max_bytes, last)

    async def page() -> Read:
        async with behind(storage) as feed:
            feed.log.bounds = KeptRange(1, 6)
            with storage.engine.transaction() as db:
                db.run("UPDATE fleet SET last_seq = 2")
            monkeypatch.setattr(storage, "read", counted)
            return await feed.broadcast.pages.page(Query(4))

    assert [entry.offset for entry in asyncio.run(page()).entries] == [5, 6]
    assert asked == 3
