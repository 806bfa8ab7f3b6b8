"""How much of the disk a hub's history takes on PostgreSQL: partitions end by their bytes, and are dropped whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from dimos_streams.hub.storage.engines import postgres
from dimos_streams.hub.storage.engines.engine import Transaction
from dimos_streams.hub.storage.engines.postgres_partitions import (
    drop_partition,
    end_filled_partition,
    look_through,
    partitions,
)
from dimos_streams.hub.storage.rows import KeptRange, Retention, RobotBatch, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from tests.helpers import wait_for
from tests.hub.stored import batch, entry, noise

BOUND = Retention(megabytes=16)
SHARE = BOUND.max_bytes // 16
_AT_ONCE = SHARE // 60_000 + 1

pytestmark = [pytest.mark.slow, pytest.mark.feature("H2")]


@pytest.fixture
def storage(postgres_url: str) -> Iterator[HubStorage]:
    """A hub's, whose tables the server's own cleaning leaves alone: it comes when it likes."""
    with contextlib.closing(HubStorage(open_engine(postgres_url))) as made:
        made.open()
        with made.engine.transaction() as db:
            db.run("ALTER TABLE calls SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)")
        yield made


def test_what_large_events_take_of_the_disk_is_bounded(storage: HubStorage) -> None:
    for kept in _shares(storage, 17):
        assert _size(storage, "events") <= BOUND.max_bytes - 2 * SHARE, kept
    assert 60_000 * (kept[1] + 1 - kept[0]) > BOUND.max_bytes * 11 // 16, "no more has gone than had to"
    assert _trim(storage) == kept
    storage.store([batch(entry(kept[1] + 1))])
    with storage.engine.transaction() as db:
        there = [seq for (seq,) in db.rows("SELECT seq FROM events ORDER BY seq")]
    assert there == list(range(kept[0], kept[1] + 2)), "nothing is lost between partitions"


def test_records_of_calls_that_are_written_anew_take_the_room_of_older_ones(storage: HubStorage) -> None:
    for at in range(8 * _AT_ONCE):
        storage.store([batch(entry(at + 1, noise(at, 60_000)))])
        if at % _AT_ONCE == 0:
            _trim(storage)
    assert _size(storage, "calls") < 6 * SHARE


def test_room_that_is_not_reclaimed_in_time_is_no_trouble(storage: HubStorage) -> None:
    storage.store([batch(entry(1))])
    columns = "first_seq, last_seq, closed, robot, record"
    calls = f"SELECT {columns}, 'c' || at FROM calls, generate_series(2, 3000) AS at"
    with storage.engine.transaction() as db:
        db.run(f"INSERT INTO calls ({columns}, call_id) {calls}")

    def reclaim() -> None:
        with storage.engine.reading() as db:
            db.rows(
                "SELECT set_config('vacuum_cost_delay', '100', false), set_config('vacuum_cost_limit', '1', false)"
            )
        storage.engine.reclaim()

    def cancel() -> bool:
        with storage.engine.reading() as db:  # in one transaction the server tells the same again
            return db.rows(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'active' AND starts_with(query, 'VACUUM')"
            ) != []  # fmt: skip

    with ThreadPoolExecutor(max_workers=1) as threads:
        asked = threads.submit(reclaim)
        wait_for(cancel, timeout_s=30.0)
        asked.result()
    assert storage.engine.trouble == ""


def test_a_partition_is_looked_through_before_anybody_has_to_wait_until_it_has_ended(
    storage: HubStorage, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server looks through it while nobody may read or store: from a disk that takes seconds for 2 GB."""
    import psycopg

    storage.store([batch(*(entry(at, noise(at, 60_000)) for at in range(1, 21)))])
    with storage.engine.transaction() as db:
        filled = partitions(db)[0]
    steps: list[tuple[str, bool]] = []

    def noted(step: Callable[[Transaction, Any], None], db: Transaction, what: Any) -> None:
        step(db, what)
        held = db.rows(
            "SELECT 1 FROM pg_locks WHERE relation = 'events'::regclass AND mode = 'AccessExclusiveLock' AND granted"
        )
        steps.append((step.__name__, bool(held)))

    for step in (look_through, end_filled_partition):
        module = "dimos_streams.hub.storage.engines.postgres"
        monkeypatch.setattr(f"{module}.{step.__name__}", partial(noted, step))
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres.ENDING_LOCK,))
        storage.engine.end_partition(SHARE)
    assert steps == [], "what another hub is at is left to it"
    storage.engine.end_partition(SHARE)
    assert steps == [("look_through", False), ("end_filled_partition", True)]
    with storage.engine.transaction() as db:
        assert partitions(db)[0] == filled._replace(behind=21)


def test_events_are_refused_while_the_oldest_can_not_be_dropped(
    storage: HubStorage, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that is open for long, as a dump's, keeps all that was there when it began."""
    import psycopg

    *_, (_, upto) = _shares(storage, 14)
    with psycopg.connect(postgres_url) as reader, monkeypatch.context() as patch:
        patch.setattr("dimos_streams.hub.storage.engines.postgres_partitions._LOCK_MS", 10)
        reader.execute("SELECT 1 FROM events LIMIT 1")
        for _ in range(5):
            try:
                storage.store([_large(upto)])
            except StorageUnavailableError as error:
                refusal = str(error)
                break
            upto += _AT_ONCE
            with pytest.raises(StorageUnavailableError, match="lock timeout"):
                storage.trim(BOUND)
        assert "pg_stat_activity lists" in refusal
        assert refusal.endswith("what is stored takes 15 of 16 MB (--keep-mb), and the oldest can't be dropped")
        assert BOUND.max_bytes - 2 * SHARE < _size(storage, "events") <= BOUND.max_bytes
    _trim(storage)
    storage.store([_large(upto)])
    assert _trim(storage).last == upto + _AT_ONCE
    assert _size(storage, "events") <= BOUND.max_bytes - 2 * SHARE


def test_a_partition_that_another_hub_drops_meanwhile_is_none(storage: HubStorage) -> None:
    def listed() -> list[int]:
        with storage.engine.transaction() as db:
            return [each.first for each in partitions(db)]

    _, *others = listed()
    waiting = (
        "SELECT 1 FROM pg_locks JOIN pg_database ON database = pg_database.oid"
        " WHERE NOT granted AND datname = current_database()"
    )
    with ThreadPoolExecutor(max_workers=1) as threads:
        with storage.engine.transaction() as db:
            drop_partition(db, partitions(db)[0])
            asked = threads.submit(listed)
            wait_for(lambda: db.rows(waiting), timeout_s=30.0)
        assert asked.result() == others


def _shares(storage: HubStorage, count: int) -> Iterator[KeptRange]:
    """What is kept after each of so many shares of the bound has come."""
    for at in range(count):
        storage.store([_large(at * _AT_ONCE)])
        yield _trim(storage)


def _trim(storage: HubStorage) -> KeptRange:
    """Drop what is too much; the server's own cleaning of a partition may have to end first."""
    kept: list[KeptRange] = []

    def is_done() -> bool:
        with contextlib.suppress(StorageUnavailableError):
            kept.append(storage.trim(BOUND))
        return bool(kept)

    wait_for(is_done, timeout_s=30.0)
    return kept[0]


def _large(upto: int) -> RobotBatch:
    return batch(*(entry(at, noise(at, 60_000), type="progress") for at in range(upto + 1, upto + 1 + _AT_ONCE)))


def _size(storage: HubStorage, table: str) -> int:
    """The bytes that a table takes with its partitions."""
    parts = "SELECT inhrelid FROM pg_inherits WHERE inhparent = ?::regclass UNION SELECT ?::regclass"
    with storage.engine.transaction() as db:
        ((size,),) = db.rows(f"SELECT sum(pg_total_relation_size(part)) FROM ({parts}) AS parts (part)", table, table)
    return int(size)
