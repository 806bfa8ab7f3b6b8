"""A PostgreSQL server of one's own, with what Debian installs: on a free port, and to be killed at will."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.process_tree import tree_of
from tests.ports import free_port

_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


class PostgresCluster:
    """A server; ``start`` begins it again after ``kill``, which leaves it no time to tidy up."""

    def __init__(self, home: Path, *, safe: bool = True) -> None:
        """``safe`` is whether commits wait for the disk, as they do where the power may fail."""
        self._home = home
        self._bin = _BINARIES[-1].parent
        self._port = free_port()
        self._safe = safe

    @property
    def url(self) -> str:
        """The database's."""
        return f"postgresql://hub@127.0.0.1:{self._port}/postgres"

    @property
    def pid(self) -> int:
        """The server's first process."""
        return int((self._home / "data" / "postmaster.pid").read_text().split()[0])

    def create(self) -> None:
        """Make its files."""
        if os.geteuid() == 0:
            shutil.chown(self._home, "postgres")
        self._run("initdb", "-D", self._home / "data", "-A", "trust", "-U", "hub", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        """Returns when it takes connections."""
        options = f"-c listen_addresses=127.0.0.1 -p {self._port} -c unix_socket_directories=''"
        options += "" if self._safe else " -c fsync=off"
        log = self._home / "log"
        try:
            self._run("pg_ctl", "-D", self._home / "data", "-w", "-l", log, "-o", options, "start")
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"PostgreSQL does not start: {log.read_text()[-2000:]}") from error

    def kill(self) -> None:
        """End all its processes at once; each is the leader of a group of its own."""
        pids = list(tree_of(self.pid))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_lives, pids)):
            time.sleep(0.01)
        # It names a process that may still be in the table, as one that nobody has waited for.
        (self._home / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it. Twice is fine."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", self._home / "data", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: object) -> None:
        words = [str(self._bin / program), *map(str, arguments)]
        if os.geteuid() == 0:  # as which the server refuses to run
            words = ["runuser", "-u", "postgres", "--", *words]
        subprocess.run(words, cwd="/", check=True, capture_output=True, timeout=600)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def postgres_cluster(*, safe: bool = True) -> Iterator[PostgresCluster]:
    """A server that runs, and is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as directory:
        cluster = PostgresCluster(Path(directory), safe=safe)
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


def is_installed() -> bool:
    """Whether there is a server to start."""
    return bool(_BINARIES) and (os.geteuid() != 0 or shutil.which("runuser") is not None)
