"""The databases in which a hub keeps what it keeps: whose they are, what is wrong with them, and how they end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.hub.storage.engines.engine import COMMANDS, EVENTS
from dimos_streams.hub.storage.engines.postgres_errors import error_line
from dimos_streams.hub.storage.engines.sqlite import SqliteEngine
from dimos_streams.hub.storage.rows import (
    StorageUnavailableError,
    WrongSchemaError,
)
from dimos_streams.hub.storage.schema import MIGRATIONS
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from dimos_streams.hub.threads import CONNECTIONS
from dimos_streams.journal.query import Query
from tests.helpers import wait_for
from tests.hub.serving import served_hub
from tests.hub.stored import ALL, PARTITION, batch, entry, numbered, opened


@pytest.mark.slow
def test_tables_of_another_version_are_told_in_a_line(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(database_url) as storage:
        storage.store([batch(*numbered(1, 3))])
        module = "dimos_streams.hub.storage.storage"
        newer = ("ALTER TABLE robots ADD COLUMN colour text NOT NULL DEFAULT ''",)
        monkeypatch.setattr(f"{module}.MIGRATIONS", (*MIGRATIONS, newer))
        monkeypatch.setattr(f"{module}.SCHEMA", 2)
        with pytest.raises(WrongSchemaError, match=r"has schema 1, and this hub .* uses schema 2: stop all hubs"):
            storage.open()
        assert storage.open(migrate=True) == 1
        monkeypatch.undo()
        with pytest.raises(WrongSchemaError, match=r"has schema 2, .* uses schema 1: another hub has changed it"):
            storage.store([batch(*numbered(4, 5))])
        assert storage.position("r1", "journal-1") == 3, "what is not acknowledged is not stored"
        with pytest.raises(WrongSchemaError, match="upgrade this hub"):
            storage.open()


def test_a_database_of_another_program_is_left_alone(database_url: str) -> None:
    engine = open_engine(database_url)
    with engine.transaction() as db:
        db.run("CREATE TABLE accounts (id integer)")
    with pytest.raises(WrongSchemaError, match="tables of another program"):
        HubStorage(engine).open()
    engine.close()


@pytest.mark.slow
def test_a_database_that_lacks_characters_is_told_in_a_line(postgres_url: str) -> None:
    """As one is that was made where no locale is set: it would give back bytes."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    engine = open_engine(postgres_url.rpartition("/")[0] + "/plain")
    with pytest.raises(UserError, match=r"/plain keeps texts in SQL_ASCII, .* make it with ENCODING 'UTF8'"):
        HubStorage(engine).open()
    engine.close()


@pytest.mark.slow
def test_a_hub_does_not_start_where_readers_could_take_all_connections(
    postgres_url: str, postgres_server: str
) -> None:
    import psycopg

    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
        db.execute("CREATE ROLE small LOGIN CONNECTION LIMIT 9")
        try:
            db.execute(f"GRANT ALL ON DATABASE {name} TO small")
            engine = open_engine(postgres_url.replace("//hub@", "//small@"))
            with pytest.raises(
                UserError, match="role small may have 9 connections, and each process of a hub needs 10"
            ):
                engine.check_connections(CONNECTIONS)
            db.execute("ALTER ROLE small CONNECTION LIMIT 10")
            db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 3")
            with pytest.raises(UserError, match=f"database {name} may have 3 connections"):
                engine.check_connections(CONNECTIONS)
            db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 20")
            engine.check_connections(CONNECTIONS)
            engine.close()
        finally:
            db.execute("DROP OWNED BY small")
            db.execute(f"REVOKE ALL ON DATABASE {name} FROM small")
            db.execute("DROP ROLE small")


@pytest.mark.slow
def test_whose_connections_are_used_up_is_told_what_allows_more(postgres_url: str, postgres_server: str) -> None:
    import psycopg

    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
        db.execute("CREATE ROLE busy LOGIN CONNECTION LIMIT 0")
        try:
            engine = open_engine(postgres_url.replace("//hub@", "//busy@"))
            with (
                contextlib.closing(engine),
                pytest.raises(
                    StorageUnavailableError,
                    match=r'for role "busy": each process of a hub needs ten, .*\(ALTER ROLE … CONNECTION LIMIT',
                ),
                engine.reading(),
            ):
                pass
        finally:
            db.execute("DROP ROLE busy")


@pytest.mark.parametrize(
    ("said", "allowed_by"),
    [
        ('too many connections for database "fleet"', "(ALTER DATABASE … CONNECTION LIMIT)"),
        ("sorry, too many clients already", "(max_connections of the server)"),
        ("remaining connection slots are reserved for superusers", "(max_connections of the server)"),
    ],
)
def test_each_bound_of_connections_is_named(said: str, allowed_by: str) -> None:
    assert f"allow so many {allowed_by}" in error_line(Exception(f"connection failed:\n  FATAL: {said}"))
    assert error_line(Exception("the server\n  ends")) == "the server ends"


def test_ten_connections_are_what_a_process_of_a_hub_needs() -> None:
    assert CONNECTIONS == 10, "an error and docs/fleet.md say so"


def test_a_hub_asks_whether_it_may_have_its_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(engine: SqliteEngine, needed: int) -> None:
        raise UserError(f"fewer than {needed}")

    monkeypatch.setattr(SqliteEngine, "check_connections", refuse)
    with pytest.raises(UserError, match="fewer than 10"), served_hub(f"sqlite:///{tmp_path}/hub.sqlite"):
        pass


@pytest.mark.slow
def test_notices_come_again_after_a_time_in_which_the_database_was_not_fit(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As while somebody has put another database in its place."""
    from dimos_streams.hub.storage.engines import postgres

    monkeypatch.setattr(postgres, "_RETRY_S", 0.01)
    monkeypatch.setattr(postgres, "_log", LimitedLog(logging.getLogger(postgres.__name__)))
    engine = postgres.PostgresEngine(postgres_url, partition=PARTITION)
    connect = engine._connections.connect
    refusals = iter([UserError("it keeps texts in SQL_ASCII"), ValueError("a defect")])

    def connect_later() -> Any:
        for refusal in refusals:
            raise refusal
        return connect()

    monkeypatch.setattr(engine._connections, "connect", connect_later)
    woken: SimpleQueue[str] = SimpleQueue()
    engine.listen(woken.put)
    assert {woken.get(timeout=20) for _ in range(2)} == {EVENTS, COMMANDS}
    engine.close()
    assert "notifies nobody: it keeps texts in SQL_ASCII" in caplog.text


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://x/y", "is of no kind that a hub knows; valid: sqlite:///FILE"),
        ("hub.sqlite", "is of no kind that a hub knows"),
        ("sqlite://hub.sqlite", "names no file"),
        ("postgresql://u:pass-word@127.0.0.1:1/y", "the hub's database postgresql://127.0.0.1:1/y: .*refused"),
        ("postgresql://u@h/y?nonsense=1", "--database 'postgresql://h/y' can't be read: .*nonsense"),
        ("postgresql://u@h,a..b/y", "--database 'postgresql://h,a..b/y' can't be read: no host has such a name"),
        ("postgresql://u:pa\udce9s@h/y", "--database 'postgresql://h/y' can't be read: it has bytes that are no "),
        ("postgresql:///y?host=/no..such/place", "the hub's database postgresql:///y: .*No such file"),
        ("sqlite:////x/hub.sqlite?mode=ro", "names no file"),
    ],
)
def test_a_wrong_url_is_told_in_a_line(url: str, why: str) -> None:
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg", reason="the extra `hub` is not installed")
    with pytest.raises((UserError, StorageUnavailableError), match=why):
        HubStorage(open_engine(url)).open()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://postgres:gehe/im99@127.0.0.1:1/hub",
        "postgres://postgres:gehe/im99@127.0.0.1:1/hub",
        "postgres://postgres:gehe@im99@127.0.0.1:1/hub",
        "postgresql://postgres:gehe#im99@127.0.0.1:1/hub",
        "postgresql://postgres:gehe?im99@127.0.0.1:1/hub",
        "postgresql://postgres:gehe%im99@127.0.0.1:1/hub",
        "postgresql://127.0.0.1:1/hub?password=gehe%im99",
        "postgresql://127.0.0.1:1/hub?password=x&gehe",
        "postgres:gehe/im99@127.0.0.1:1/hub",
        "sqlite://u:gehe/im99@127.0.0.1/hub",
    ],
)
def test_no_error_shows_what_is_before_a_databases_host(url: str) -> None:
    if url.startswith("postgres"):
        pytest.importorskip("psycopg", reason="the extra `hub` is not installed")
    with pytest.raises((UserError, StorageUnavailableError)) as caught:
        HubStorage(open_engine(url)).open()
    said = str(caught.value)
    assert ("gehe" in said, "im99" in said, said.strip().count("\n")) == (False, False, 0), said
    if "@" in url and "://" in url:
        assert "127.0.0.1" in said, "where it is may be shown"


def test_who_reads_a_file_waits_for_nobody_who_writes_it(tmp_path: Path) -> None:
    """Anybody may ask with a token that is none."""
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage, ThreadPoolExecutor(1) as readers:
        storage.store([batch(entry(1))])
        with storage.engine.transaction() as db:
            db.run("UPDATE fleet SET last_seq = last_seq")
            assert readers.submit(storage.robots.of_token, "none").result(5.0) == ""
            assert readers.submit(storage.position, "r1", "journal-1").result(5.0) == 1
            assert len(readers.submit(storage.read, Query(0), 10, ALL).result(5.0).entries) == 1


def test_a_file_is_its_owners_only(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite"):
        assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_a_file_of_a_user_whose_hub_root_runs_is_its_owners_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hub.sqlite"
    path.touch(0o666)
    if os.geteuid() == 0:
        os.chown(path, 1234, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with opened(f"sqlite:///{path}"):
        assert {each.stat().st_mode & 0o077 for each in tmp_path.iterdir()} == {0}


def test_a_file_that_is_there_or_behind_a_link_is_its_owners_only_too(tmp_path: Path) -> None:
    real = tmp_path / "real.sqlite"
    (tmp_path / "link.sqlite").symlink_to(real)
    before = os.umask(0o022)
    try:
        with opened(f"sqlite:///{tmp_path}/link.sqlite"):
            assert real.stat().st_mode & 0o077 == 0, "also one that a link has named before it was there"
        real.chmod(0o644)
        with opened(f"sqlite:///{real}"):
            assert {path.stat().st_mode & 0o077 for path in tmp_path.glob("real*")} == {0}
    finally:
        os.umask(before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("strangers", ["", "-wal", "-shm", ".lock"])
def test_a_file_of_another_user_is_no_hubs(strangers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / f"hub.sqlite{strangers}"
    file.touch(0o666)
    os.chown(file, 65534, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    refused = pytest.raises(UserError, match=f"{file} belongs to user 65534, who could act as the hub")
    with refused, opened(f"sqlite:///{tmp_path}/hub.sqlite"):
        pass
    with refused:
        SqliteEngine(tmp_path / "hub.sqlite", partition=PARTITION).take()


@pytest.mark.parametrize("there", [True, False])
def test_no_link_of_another_user_leads_to_a_hubs_file(
    there: bool, tmp_path: Path, strangers_link: Callable[[Path, str], None]
) -> None:
    """Where all users may write, one could have a hub work on another file of its user."""
    link, own = tmp_path / "hub.sqlite", tmp_path / "own.sqlite"
    if there:
        own.touch(0o600)
    link.symlink_to("theirs")
    strangers_link(tmp_path / "theirs", own.name)
    refused = pytest.raises(UserError, match=f"{link} belongs to user 65534, who could act as the hub")
    with refused, opened(f"sqlite:///{link}"):
        pass
    assert own.exists() is there


def test_a_file_system_without_locks_is_not_taken_for_another_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    engine = SqliteEngine(tmp_path / "hub.sqlite", partition=PARTITION)
    with contextlib.closing(engine), pytest.raises(DimosStreamsError, match="can't be used: No locks available"):
        engine.take()


def test_a_file_is_one_hubs_by_whatever_name(tmp_path: Path) -> None:
    real, link, other = (tmp_path / name for name in ("real.sqlite", "link.sqlite", "other.sqlite"))
    with opened(f"sqlite:///{real}"):
        pass
    link.symlink_to(real)
    first, second = (SqliteEngine(path, partition=PARTITION) for path in (real, link))
    first.take()
    try:
        with pytest.raises(UserError, match=f"another hub serves from {link}"):
            second.take()
        assert not list(tmp_path.glob("link*.lock"))
    finally:
        first.close()
        second.close()
    other.hardlink_to(real)
    with pytest.raises(UserError, match=r"other.sqlite has 2 names \(hard links\)"):
        HubStorage(open_engine(f"sqlite:///{other}")).open()
    loop = tmp_path / "loop.sqlite"
    loop.symlink_to(loop)
    with pytest.raises(UserError, match=r"loop\.sqlite can't be used"):
        SqliteEngine(loop, partition=PARTITION).take()


@pytest.mark.slow
def test_another_process_that_is_done_with_a_file_leaves_it_to_those_that_are_not(tmp_path: Path) -> None:
    """The last one to close it takes its log away. Whether there are others SQLite knows by their locks, which a
    process loses if it closes the file besides."""
    url = f"sqlite:///{tmp_path}/hub.sqlite"
    program = (
        "import sys; from dimos_streams.hub.storage.storage import HubStorage, open_engine;"
        "storage = HubStorage(open_engine(sys.argv[1])); storage.open(); storage.robots.add('other'); storage.close()"
    )
    with opened(url) as storage:
        storage.robots.add("own")
        with ThreadPoolExecutor(1) as fresh:
            fresh.submit(storage.bounds).result()  # a thread of its own has a connection of its own
        subprocess.run([sys.executable, "-c", program, url], check=True, timeout=60)
        assert (tmp_path / "hub.sqlite-wal").exists()
        assert [robot.name for robot in storage.robots.all()] == ["other", "own"]


def test_what_is_no_database_leaves_no_connection_open(tmp_path: Path) -> None:
    path = tmp_path / "hub.sqlite"
    path.write_bytes(b"no database" * 1000)
    engine = SqliteEngine(path, partition=PARTITION)
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(UserError), engine.reading():
            pass
    assert len(os.listdir("/proc/self/fd")) <= len(before)


@pytest.mark.slow
def test_a_page_whose_database_ends_meanwhile_leaves_nothing_open(postgres_url: str, postgres_server: str) -> None:
    import psycopg

    def read() -> None:
        with engine.reading() as transaction, transaction.each("SELECT generate_series(1, 10)") as rows:
            assert next(rows) == (1,)
            with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
                ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
                db.execute(ended, [postgres_url.rpartition("/")[2]])

    engine = open_engine(postgres_url, partition=PARTITION)
    with contextlib.closing(engine), pytest.raises(StorageUnavailableError):
        read()
    gc.collect()  # what was left open is complained of when it goes


@pytest.mark.slow
@pytest.mark.parametrize(("given", "used"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_what_is_acknowledged_is_on_the_disk_whatever_the_database_is_set_to(
    postgres_url: str, given: str, used: str
) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET synchronous_commit = {given}")
    engine = open_engine(postgres_url)
    with contextlib.closing(engine), engine.transaction() as transaction:
        assert transaction.rows("SHOW synchronous_commit") == [(used,)]


@pytest.mark.slow
def test_a_database_that_was_read_only_is_written_again_once_it_may_be(
    postgres_url: str, postgres_server: str
) -> None:
    import psycopg

    name = postgres_url.rpartition("/")[2]
    with opened(postgres_url) as storage, psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
        db.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        with ThreadPoolExecutor(1) as fresh:  # a thread of its own has a session of its own, which begins read-only
            with pytest.raises(StorageUnavailableError, match="read-only"):
                fresh.submit(storage.robots.add, "r1").result()
            db.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            assert fresh.submit(storage.robots.add, "r1").result()


def test_who_waits_to_write_goes_before_a_thread_that_writes_again_at_once(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "hub.sqlite", partition=PARTITION)
    wrote: list[str] = []

    def write(who: str) -> None:
        with engine.transaction():
            wrote.append(who)

    with ThreadPoolExecutor(2) as threads:
        with engine.transaction():
            first = threads.submit(write, "first")
            wait_for(lambda: len(engine._turns._asking) == 2)
            second = threads.submit(write, "second")
            wait_for(lambda: len(engine._turns._asking) == 3)
        write("again")
        for each in (first, second):
            each.result(30.0)
    engine.close()
    assert wrote == ["first", "second", "again"]


def test_a_thread_that_waits_too_long_to_write_says_so_and_leaves_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.storage.engines.sqlite._BUSY_S", 0.01)
    engine = SqliteEngine(tmp_path / "hub.sqlite", partition=PARTITION)

    def write() -> None:
        with engine.transaction():
            pass

    with ThreadPoolExecutor(1) as threads:
        with (
            engine.transaction(),
            pytest.raises(StorageUnavailableError, match=r"others have been writing to it for 0\.01 s"),
        ):
            threads.submit(write).result(30.0)
        threads.submit(write).result(30.0)
    engine.close()
