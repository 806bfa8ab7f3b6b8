"""The numbers of a hub's events where their database may have lost the newest of what it had."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.storage.engines.sqlite import SqliteEngine
from dimos_streams.hub.storage.rows import Retention, StorageUnavailableError, WrongSchemaError
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from dimos_streams.journal.query import SPAN, Query, QueryBack
from tests.hub.stored import ALL, PARTITION, batch, numbered, opened, seqs

pytestmark = pytest.mark.feature("H2")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/hub.sqlite"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the server that hubs are on now, which is the only item; a file has none by itself."""
    servers = ["first"]
    monkeypatch.setattr(SqliteEngine, "server", lambda engine, db: servers[0])
    return servers


@pytest.mark.parametrize("seed", range(2))
def test_no_number_is_given_twice_whichever_hub_comes_first_to_a_server(
    url: str, servers: list[str], seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that its own readers have seen, nor one that only those of another hub have."""
    chance, seen = random.Random(seed), set[int]()
    with opened(url) as one, opened(url) as other:
        hubs, shipped = [one, other], 0
        for server in range(1, 5):
            for _ in range(3):
                hub, count = chance.choice(hubs), chance.randint(1, 9)
                before = hub.bounds().last
                hub.store([batch(*numbered(1, count), journal=f"journal-{server}-{shipped}")])
                given = set(range(before + 1, hub.bounds().last + 1))
                assert not given & seen
                seen |= given
                shipped += 1
            _lose(hub, before=max(seen) - chance.randint(0, 8))
            servers[0] = f"server-{server}"
            for each in chance.sample(hubs, 2):
                for _ in range(2):  # each of its threads has a connection
                    _resume(each)
        assert [hub.sequence.losses for hub in hubs] == [4, 4]
    assert caplog.text.count("may have lost the newest events") == 8


def test_a_hub_that_begins_on_another_server_goes_on_behind_what_others_may_have_seen(
    url: str, servers: list[str]
) -> None:
    with opened(url) as storage:
        storage.store([batch(*numbered(1, 3))])
    with opened(url) as storage:
        assert storage.bounds().last == 3, "it is the same one"
    servers[0] = "second"
    with opened(url) as storage:
        assert storage.bounds() == (1, 3 + PARTITION)
        assert storage.sequence.losses == 0, "its process says to robots that it begins"


def test_numbers_grow_though_a_copy_is_put_back_over_connections_that_go_on(url: str) -> None:
    with opened(url) as storage:
        storage.store([batch(*numbered(1, 9))])
        _lose(storage, before=5)
        storage.store([batch(*numbered(1, 2), journal="journal-2")])
        assert seqs(storage) == [1, 2, 3, 4, 10 + PARTITION, 11 + PARTITION]
        assert storage.sequence.losses == 1


def test_attempts_that_come_to_nothing_pass_over_no_numbers(url: str, servers: list[str]) -> None:
    """As on a full disk: the numbers that are left out have a bound."""
    with opened(url) as storage:
        storage.store([batch(*numbered(1, 9))])
        servers[0] = "second"
        for _ in range(3):
            with pytest.raises(DimosStreamsError):
                _resume(storage, DimosStreamsError("the disk is full"))
        assert storage.sequence.losses == 0
        _resume(storage)
        assert storage.bounds().last == 9 + PARTITION
        assert storage.sequence.losses == 1


def test_numbers_that_are_passed_over_keep_no_event_out(url: str, servers: list[str]) -> None:
    with opened(url) as storage:
        storage.store([batch(*numbered(1, 60))])
        for servers[0] in ("second", "third"):
            _resume(storage)
        storage.store([batch(*numbered(61, 62))])
        assert storage.trim(Retention(events=62)) == (1, 162)
        storage.store([batch(*numbered(63, 122))])
        assert storage.trim(Retention(events=60)) == (51, 222), "the last of before, until all of them have gone"
        storage.store([batch(*numbered(123, 282))])
        assert storage.trim(Retention(events=60)) == (201, 382)
        assert storage.trim(Retention(events=60)) == (301, 382), "so many, and up to a partition more"


def test_a_page_begins_behind_numbers_that_are_passed_over(url: str) -> None:
    with opened(url) as storage:
        storage.store([batch(*numbered(1, 3))])
        with storage.engine.transaction() as db:
            db.run("UPDATE fleet SET last_seq = ?", 10 * SPAN)
        assert storage.read(Query(3), 9, ALL).upto == 10 * SPAN, "there is none yet"
        storage.store([batch(*numbered(4, 5))])
        behind = [10 * SPAN + 1, 10 * SPAN + 2]
        assert [each.offset for each in storage.read(Query(3), 9, ALL).entries] == behind
        assert [each.offset for each in storage.read_back(QueryBack(behind[0]), 9, ALL).entries] == [1, 2, 3]
        assert storage.read(Query(10 * SPAN + 5), 9, ALL).upto == 10 * SPAN + 5, "no reader goes back"


@pytest.mark.parametrize("how", ["no tables", "no row", "another hub's tables"])
def test_a_database_that_was_emptied_or_replaced_is_told_and_not_used(database_url: str, how: str) -> None:
    with opened(database_url) as storage, contextlib.ExitStack() as others:
        storage.store([batch(*numbered(1, 3))])
        _empty(database_url, rows_only=how == "no row")
        if how == "another hub's tables":
            others.enter_context(opened(database_url)).store([batch(*numbered(1, 7), robot="r9")])
        for use in (storage.bounds, storage.robots.all, lambda: storage.store([batch(*numbered(4, 5))])):
            with pytest.raises(StorageUnavailableError, match=r"was emptied or replaced .*: put it back, or restart"):
                use()
        assert "was emptied or replaced" in storage.engine.trouble, "for /healthz"
    if how == "no row":
        with (
            contextlib.closing(HubStorage(open_engine(database_url))) as emptied,
            pytest.raises(WrongSchemaError, match="were emptied: put a copy back, or drop them all"),
        ):
            emptied.open()
    else:
        with opened(database_url) as again:
            again.store([batch(*numbered(8, 9), journal="journal-2")])


def _lose(storage: HubStorage, *, before: int) -> None:
    """Have the database without the events from a number on."""
    with storage.engine.transaction() as db:
        db.run("UPDATE fleet SET last_seq = ?", before - 1)
        db.run("DELETE FROM events WHERE seq >= ?", before)


def _resume(storage: HubStorage, error: DimosStreamsError | None = None) -> None:
    """What a connection to a server begins with, and a look at what is there."""
    with storage.engine.transaction() as db:
        storage.sequence.resume(db)
        if error is not None:
            raise error
    storage.bounds()


def _empty(url: str, *, rows_only: bool) -> None:
    engine = open_engine(url)
    with contextlib.closing(engine), engine.transaction() as db:
        if rows_only:
            db.run("DELETE FROM fleet")
            return
        for table in ("fleet", "robots", "journals", "events", "calls", "commands", "hubs"):
            db.run(f"DROP TABLE {table}")
