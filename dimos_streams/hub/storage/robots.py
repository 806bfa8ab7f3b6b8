"""The robots of a fleet: their tokens, and what they report."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping

from dimos_streams.errors import UserError, suggest
from dimos_streams.hub.storage.calls import lose_calls
from dimos_streams.hub.storage.commands import expire_commands
from dimos_streams.hub.storage.engines.engine import Engine
from dimos_streams.hub.storage.rows import RobotRow

_US = 1_000_000
_TOKEN_BYTES = 24
_TURN_S = 60.0
"""Time, in seconds, within which a process that comes back after another one took its place shows that there are two.
A robot that restarts has another process, and the one of before never comes back."""


class UnknownFleetRobotError(UserError):
    """Raised for a name that no robot of the fleet has."""

    def __init__(self, robot: str, known: Collection[str]) -> None:
        names = ", ".join(sorted(known)[:50]) if known else "none; `dimos-streams hub robots add NAME` adds one"
        super().__init__(f"no robot of this fleet is called {robot!r}{suggest(robot, known)} (robots: {names})")


class RobotTable:
    """The robots of a fleet: who may connect, who is connected, and what each reports. Methods raise as those of
    ``HubStorage`` do, and wait for the database likewise.

    Of tokens only hashes are kept: they are random, and long enough for that.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self,
        name: str,
        token: str | None = None,
        *,
        again: bool = False,
        hand_over: Callable[[str], None] | None = None,
    ) -> str:
        """Let a robot connect; return its token, a new one if none is given. With ``again`` a robot that is known
        gets another token; the old one ends, and so does the stream of commands of whoever has it.

        ``hand_over`` gets the token before it counts: if it raises, nothing has changed. Raises ``UserError`` for a
        robot that is known already, unless ``again`` is given.
        """
        token = token or new_token()
        with self._engine.transaction() as db:
            known = db.rows("SELECT name FROM robots WHERE name = ?", name)
            if known and not again:
                raise UserError(f"robot {name!r} is known already; --new-token gives it another token")
            if not known:
                expire_commands(db, name)  # whoever asked the one before it may have waited until that was gone
            db.run(
                "INSERT INTO robots (name, token_hash, added) VALUES (?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET token_hash = excluded.token_hash, connected_by = '',"
                " connected_until = 0, process = '', replaced = '', doubled_until = 0",
                name, token_hash(token), db.now(),
            )  # fmt: skip
            if hand_over is not None:
                hand_over(token)
        return token

    def remove(self, name: str) -> None:
        """Let a robot connect no more. Its events stay; what it had to do is none of the next robot's of that name.

        Raises ``UnknownFleetRobotError``.
        """
        with self._engine.transaction() as db:
            if db.run("DELETE FROM robots WHERE name = ?", name) == 0:
                raise UnknownFleetRobotError(name, [row[0] for row in db.rows("SELECT name FROM robots")])
            expire_commands(db, name)
            lose_calls(db, name, f"its robot {name!r} was removed from the fleet; nobody knows how it ended")

    def has_shipped(self, name: str) -> bool:
        """True if events of a robot of this name are known, also of one that was removed."""
        with self._engine.reading() as db:
            return db.rows("SELECT 1 FROM journals WHERE robot = ? LIMIT 1", name) != []

    def of_token(self, token: str) -> str:
        """The robot that has a token; empty for nobody's."""
        with self._engine.reading() as db:
            rows = db.rows("SELECT name FROM robots WHERE token_hash = ?", token_hash(token))
        return str(rows[0][0]) if rows else ""

    def all(self) -> list[RobotRow]:
        """Return all robots, ordered by name."""
        with self._engine.reading() as db:
            now = db.now()
            rows = db.rows(
                "SELECT name, added, heard, connected_until, doubled_until, clock_us, version, report, skills,"
                " acknowledged FROM robots LEFT JOIN journals"
                " ON journals.robot = robots.name AND journals.journal = robots.journal ORDER BY name"
            )
        return [
            RobotRow(
                name=name,
                added=added,
                heard=heard,
                connected=until >= now,
                doubled=doubled_until > now,
                clock_us=clock_us,
                version=version,
                report=report,
                skills=skills,
                acknowledged=None if acknowledged is None else max(0, acknowledged),
            )
            for name, added, heard, until, doubled_until, clock_us, version, report, skills, acknowledged in rows
        ]

    def report(self, name: str, *, version: str, journal: str, report: str, skills: str | None) -> bool:
        """Keep a report; return whether the robot's skills are known."""
        with self._engine.transaction() as db:
            db.run(
                "UPDATE robots SET version = ?, journal = ?, report = ?, heard = ? WHERE name = ?",
                version, journal, report, db.now(), name,
            )  # fmt: skip
            if skills is not None:
                db.run("UPDATE robots SET skills = ? WHERE name = ?", skills, name)
                return True
            return db.rows("SELECT 1 FROM robots WHERE name = ? AND skills <> ''", name) != []

    def hear(self, clocks: Mapping[str, int]) -> None:
        """Note that robots were heard of, and how far their clocks seem to be ahead, in µs."""
        with self._engine.transaction() as db:
            now = db.now()
            rows = [(now, ahead, name) for name, ahead in sorted(clocks.items())]
            db.many("UPDATE robots SET heard = ?, clock_us = ? WHERE name = ?", rows)

    def connect(self, name: str, stream: str, process: str, valid_s: float) -> bool:
        """Note that a process of a robot has a new stream of commands; any other one of the robot is over. Return
        whether two processes take turns as this robot."""
        with self._engine.transaction() as db:
            now = db.now()
            turn = int(_TURN_S * _US)
            rows = db.rows(
                "UPDATE robots SET connected_by = ?, connected_until = ?,"
                " doubled_until = CASE WHEN process <> ? AND replaced = ? AND replaced_at > ? THEN ?"
                " ELSE doubled_until END,"
                " replaced = CASE WHEN process = ? THEN replaced ELSE process END,"
                " replaced_at = CASE WHEN process = ? THEN replaced_at ELSE ? END,"
                " process = ? WHERE name = ? RETURNING doubled_until",
                stream, now + int(valid_s * _US), process, process, now - turn, now + turn, process, process, now,
                process, name,
            )  # fmt: skip
        return bool(rows) and rows[0][0] > now

    def keep(self, streams: Mapping[str, str], valid_s: float) -> set[str]:
        """Note that streams go on, by their robots' names; return the robots whose stream is over, or followed by
        another."""
        with self._engine.transaction() as db:
            until = db.now() + int(valid_s * _US)
            statement = "UPDATE robots SET connected_until = ? WHERE name = ? AND connected_by = ?"
            return {name for name, stream in sorted(streams.items()) if not db.run(statement, until, name, stream)}

    def disconnect(self, name: str, stream: str) -> None:
        """Note that a stream is over."""
        with self._engine.transaction() as db:
            # Without its name no ``keep`` that another thread has begun with it makes it go on.
            statement = "UPDATE robots SET connected_until = 0, connected_by = '' WHERE name = ? AND connected_by = ?"
            db.run(statement, name, stream)


def new_token() -> str:
    """A token that nobody has."""
    return f"dsr_{secrets.token_urlsafe(_TOKEN_BYTES)}"


def token_hash(token: str) -> str:
    """The form in which a robot's token is kept."""
    return hashlib.sha256(token.encode()).hexdigest()
