"""A hub's databases: SQLite files, and a PostgreSQL server of the session's own where Debian's is installed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dimos_streams.hub.storage.storage import HubStorage
from tests.hub.stored import opened
from tests.ports import free_port

_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
_MEMORY = "/dev/shm"
_ROOM = 1 << 30
_numbers = itertools.count(1)


def _memory() -> str | None:
    """Where files are kept in memory, if there is room for a server's: a disk takes longer to make the thousand of a
    new database than all tests of it last. None where there is not."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return None
    return _MEMORY if room.f_bavail * room.f_frsize >= _ROOM and os.access(_MEMORY, os.W_OK) else None


def _as_postgres(*command: object) -> list[str]:
    """The server refuses to run as root."""
    words = list(map(str, command))
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The beginning of the URLs of a server's databases: on a free port of this machine, gone after the tests."""
    pytest.importorskip("psycopg", reason="the extra `hub` is not installed")
    if not _SERVERS:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    bin = _SERVERS[-1].parent
    port = free_port()
    home = Path(tempfile.mkdtemp(prefix="hub-postgres-", dir=_memory()))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        initdb = _as_postgres(
            bin / "initdb", "-D", home / "data", "-A", "trust", "-U", "hub", "--no-sync", "-E", "UTF8"
        )
        subprocess.run(initdb, cwd="/", check=True, capture_output=True, timeout=120)
        # Tests end servers in worse ways than any that flushing would help against, but for that of a lost machine.
        options = f"-c listen_addresses=127.0.0.1 -p {port} -c fsync=off -c unix_socket_directories="
        control = _as_postgres(bin / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log")
        subprocess.run([*control, "-o", options, "start"], cwd="/", check=True, capture_output=True, timeout=60)
        try:
            yield f"postgresql://hub@127.0.0.1:{port}"
        finally:
            subprocess.run(
                [*control, "-m", "immediate", "stop"], cwd="/", check=False, capture_output=True, timeout=60
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty database."""
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{postgres_server}/{name}"
    finally:
        with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def promote(postgres_server: str) -> Callable[[], None]:
    """Makes the server a standby, and promotes it."""
    import psycopg

    def promote() -> None:
        with psycopg.connect(f"{postgres_server}/postgres") as db:
            ((data,),) = db.execute("SHOW data_directory").fetchall()
        control = (_SERVERS[-1].parent / "pg_ctl", "-D", data, "-w", "-l", Path(data).parent / "log")
        restart, signal = (*control, "-m", "fast", "restart"), Path(data) / "standby.signal"
        for command in (("touch", signal), restart, (*control, "promote")):
            subprocess.run(_as_postgres(*command), cwd="/", check=True, capture_output=True, timeout=60)

    return promote


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hub.sqlite"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def storage(database_url: str) -> Iterator[HubStorage]:
    with opened(database_url) as made:
        yield made
