"""Hubs on a PostgreSQL server that is replaced by one which lacks the newest of what it had."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from tests.hub.stored import ALL, PARTITION, batch, command, numbered, opened, seqs

pytestmark = [pytest.mark.feature("H2"), pytest.mark.slow]


def test_no_number_that_a_hub_has_seen_is_given_again(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A reader that has had it would never hear of the event that has it next."""
    with opened(postgres_url) as storing, opened(postgres_url) as reading:
        storing.store([batch(*numbered(1, 4))])
        assert seqs(reading) == [1, 2, 3, 4]
        _fail_over(postgres_url, events=2)
        assert reading.position("r1", "journal-1") == 2
        reading.store([batch(*numbered(3, 4))])
        assert seqs(reading) == [1, 2, 5 + PARTITION, 6 + PARTITION]
    assert f"goes on behind {4 + PARTITION}" in caplog.text
    assert reading.sequence.losses == 1


def test_hubs_go_on_behind_what_others_may_have_seen_where_a_standby_was_promoted(
    postgres_url: str, promote: Callable[[], None]
) -> None:
    """Whichever comes first, with as little as it has seen: what it lacks is told by the server's timeline."""
    with opened(postgres_url) as storing, opened(postgres_url) as reading:
        storing.store([batch(*numbered(1, 4))])
        promote()
        reading.store([batch(*numbered(5, 6))])
        storing.store([batch(*numbered(7, 7))])
        assert seqs(storing) == seqs(reading) == [1, 2, 3, 4, *range(5 + PARTITION, 8 + PARTITION)]
        assert (storing.sequence.losses, reading.sequence.losses) == (1, 1)


def test_a_server_is_known_again_and_a_copy_of_its_database_is_another_one(postgres_url: str) -> None:
    import psycopg

    with opened(postgres_url) as storage:
        names = {_server(storage), _server(storage)}
    with opened(postgres_url) as storage:
        assert names == {_server(storage)}
    copy = f"{postgres_url}_copy".rpartition("/")[2]
    with psycopg.connect(postgres_url.rpartition("/")[0] + "/postgres", autocommit=True) as db:
        db.execute(f"CREATE DATABASE {copy} TEMPLATE {postgres_url.rpartition('/')[2]}")
        try:
            with opened(f"{postgres_url}_copy") as storage:
                assert _server(storage) not in names
        finally:
            db.execute(f"DROP DATABASE {copy} WITH (FORCE)")


def test_events_are_stored_though_the_newest_partitions_are_lost(postgres_url: str) -> None:
    with opened(postgres_url) as storage:
        storage.store([batch(*numbered(1, 130))])
        _fail_over(postgres_url, events=2, first_lost_partition=51)
        with pytest.raises(StorageUnavailableError, match="no partition"):
            storage.store([batch(*numbered(3, 4))])
        storage.store([batch(*numbered(3, 4))])
        assert seqs(storage) == [1, 2, 131 + PARTITION, 132 + PARTITION]


def test_no_number_of_a_command_is_given_again(postgres_url: str) -> None:
    """An answer names the command by its number alone: a late one would be taken for that to another command."""
    with opened(postgres_url) as storage:
        before = [_given(storage, f"k{number}") for number in range(3)]
        _fail_over(postgres_url, events=0, last_command=before[0])
        assert _given(storage, "other") > before[-1]


def _fail_over(url: str, *, events: int, last_command: int = 1, first_lost_partition: int = ALL) -> None:
    """Make a server into one that has fewer events and commands, and end all connections to it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        for statement in (
            f"UPDATE fleet SET last_seq = {events}",
            f"DELETE FROM events WHERE seq > {events}",
            *(f"DROP TABLE IF EXISTS events_{first}" for first in range(first_lost_partition, 1000, PARTITION)),
            f"UPDATE journals SET acknowledged = {events}",
            f"DELETE FROM commands WHERE id > {last_command}",
            f"SELECT setval('commands_id_seq', {last_command})",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        ):
            db.execute(statement)


def _given(storage: HubStorage, key: str) -> int:
    id = storage.commands.give(command(key))
    assert isinstance(id, int)
    return id


def _server(storage: HubStorage) -> str:
    with storage.engine.transaction() as db:
        return storage.engine.server(db)
