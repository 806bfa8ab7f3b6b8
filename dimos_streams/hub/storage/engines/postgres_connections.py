"""The connections to a PostgreSQL server: one for each thread that uses it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from dimos_streams.common.schemas.host_name import host_fault
from dimos_streams.common.secrets import know
from dimos_streams.errors import UserError
from dimos_streams.hub.storage.engines.urls import check_user, shown, without_parts

if TYPE_CHECKING:
    import psycopg

_OPTIONS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        # A hub that is stopped in the middle of a transaction would hold up all others for good.
        "idle_in_transaction_session_timeout": "10s",
        "statement_timeout": "60s",
        "lock_timeout": "20s",
        "timezone": "UTC",
    }.items()
)
# What a robot was told to be stored it may forget, and readers have seen its number: a crash must lose no commit.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


class PostgresConnections:
    """Connections to one database. Methods raise ``psycopg.Error`` where the server does not answer."""

    def __init__(self, url: str) -> None:
        """Read the URL; connect later. Raises ``UserError`` if the driver is not installed, or can't read the URL."""
        try:
            import psycopg
        except ImportError as error:
            raise UserError(
                "PostgreSQL needs the extra `hub`: pip install 'dimos-streams[hub]'"
                " (without it: --database sqlite:///FILE)"
            ) from error
        self.where = shown(url)
        check_user(url)
        try:
            read = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            said = without_parts(" ".join(str(error).split()), url)
            # Not from the driver's error, whose text has parts of the URL.
            raise UserError(f"--database {self.where!r} can't be read: {said}") from None
        except UnicodeEncodeError:
            raise UserError(f"--database {self.where!r} can't be read: it has bytes that are no UTF-8") from None
        for host in str(read.get("host") or "").split(","):
            if not host.startswith(("/", "@")) and (fault := host_fault(host)):  # else it is a socket's path
                raise UserError(f"--database {self.where!r} can't be read: {fault}")
        for name in ("password", "sslpassword"):
            know(str(read.get(name) or ""))
        self.psycopg = psycopg
        self.closed = threading.Event()
        self._url = url
        self._local = threading.local()
        self._guard = threading.Lock()
        self._all: set[psycopg.Connection[Any]] = set()
        self._era = 0
        """Number of times that all connections had to be made anew."""

    def begin(self) -> psycopg.Connection[Any]:
        """This thread's connection, in a new transaction. One that has died since it was used is replaced at once."""
        db = self._own()
        try:
            db.execute("BEGIN")
        except self.psycopg.OperationalError:
            if not (db.closed or db.broken):
                raise
            self.drop_broken()
            db = self._own()
            db.execute("BEGIN")
        return db

    def renew(self) -> None:
        """Have each thread begin anew with its next transaction: a session keeps the settings with which it began,
        also after the database has others."""
        self._era += 1

    def drop_broken(self) -> None:
        """Drop this thread's connection if it can't be used any more: its next transaction then has a new one."""
        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is not None and (db.closed or db.broken):
            self._local.db = None

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, which ``close`` closes at the latest."""
        db = self.psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=5,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=15_000,
            application_name="dimos-streams hub",
            options=_OPTIONS,
            client_encoding="UTF8",
        )
        if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
            db.close()
            raise UserError(
                f"the hub's database {self.where} keeps texts in {encoding}, which has not all characters of events;"
                " make it with ENCODING 'UTF8' TEMPLATE template0"
            )
        db.execute(_DURABLE)
        with self._guard:
            self._all = {each for each in self._all if not each.closed} | {db}
        if self.closed.is_set():
            db.close()
        return db

    def close(self) -> None:
        """Close all, also those that are yet to be made. Twice is fine."""
        self.closed.set()
        with self._guard:
            connections, self._all = self._all, set()
        for db in connections:
            with contextlib.suppress(self.psycopg.Error):
                db.close()

    def _own(self) -> psycopg.Connection[Any]:
        db: psycopg.Connection[Any] | None = getattr(self._local, "db", None)
        if db is not None and self._local.era != self._era:
            db.close()
        if db is None or db.closed:
            self._local.era = self._era
            db = self._local.db = self.connect()
        return db
