"""Commands on their way to robots, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from dimos_streams import clock
from dimos_streams.common.json.writing import json_text
from dimos_streams.fleet.commands import Answer, Method, Role, two_robots
from dimos_streams.fleet.lanes import MOST_AT_ONCE, lane_of
from dimos_streams.fleet.paths import bare_path
from dimos_streams.hub.storage.command_keys import WHAT, find_by_key, is_same, shown_key, what_of
from dimos_streams.hub.storage.engines.engine import COMMANDS, Engine, Transaction
from dimos_streams.hub.storage.rows import CommandState, DueCommand, NewCommand, StorageUnavailableError

_US = 1_000_000
_RETURN_US = 3 * _US
"""Time within which a process whose stream another one has ended asks for a new one if it is alive."""
_STOPPING = ("safety", "models' cancels")
"""The lanes of commands that stop something, besides those that release a robot."""


class _Waiting(NamedTuple):
    """A command that is not answered. ``sent_by`` and ``sent_to`` are the stream and the process that have it."""

    id: int
    robot: str
    key: str
    asked_by: str
    role: Role
    method: Method
    path: str
    body: str
    expires: int
    given: int
    sent_by: str
    sent_to: str

    def as_due(self, now: int) -> DueCommand:
        """The command as its robot gets it at a time."""
        return DueCommand(
            id=self.id,
            robot=self.robot,
            key=self.key,
            asked_by=self.asked_by,
            role=self.role,
            method=self.method,
            path=self.path,
            body=self.body,
            expires_in_s=(self.expires - now) / _US,
        )


class _StateRow(NamedTuple):
    """The columns of a command that say what became of it. Those of the answer are None before there is one."""

    id: int
    doubled_until: int | None
    sent: int | None
    expires: int
    outcome: Any
    status: Any
    headers: Any
    answer: Any
    given: int

    def as_state(self, now: int) -> CommandState:
        """The state of the command at a time."""
        return CommandState(
            id=self.id,
            sent=self.sent is not None,
            left_s=(self.expires - now) / _US if self.given <= now else 0.0,
            outcome=self.outcome,
            status=self.status or 0,
            headers=self.headers or "{}",
            body=self.answer or "null",
            doubled=(self.doubled_until or 0) > now,
        )


class _Holder(NamedTuple):
    """The holder of a robot's stream of commands, see ``RobotTable.connect``."""

    connected_by: str
    process: str
    replaced_at: int
    doubled_until: int


_FIELDS = len(_Waiting._fields)


class CommandTable:
    """The commands for robots, and how each ended. Methods raise as those of ``HubStorage`` do, and wait for the
    database likewise.

    How long a command is valid is counted by the database's clock alone. A command that was given later than the
    present, because that clock was set back, has expired for good: nobody knows how old it is. So the clock is read
    behind the rows: another hub may give one while they are asked for.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._listener: Callable[[], None] = lambda: None

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener``, from any thread, whenever there is a command or an answer: where one process has the
        database to itself nobody else notifies it."""
        self._listener = listener

    def give(self, new: NewCommand, asked_at: float | None = None) -> int | str:
        """Keep a command for its robot; return its id, or that of the one with this key, or a text that says why not.

        A key is free again if nothing was begun. If nobody knows, or there is more to wait for, the robot is asked
        again by another command of the key.

        How long it is valid counts from ``asked_at``, a reading of ``clock.steady`` (now, without one): what it waits
        for here makes it no younger. Raises ``StorageUnavailableError`` if it has expired by then.
        """
        asked_at = clock.steady() if asked_at is None else asked_at
        with self._engine.transaction() as db:
            while (given := _give(db, new, asked_at)) is None:  # another hub was given it at the same time
                pass
            db.notify(COMMANDS)
        self._listener()
        return given

    def due(self, streams: Mapping[str, str]) -> list[DueCommand]:
        """Commands that the streams of robots are to hand on; from now on they count as sent there. A stream that is
        not its robot's any more gets none, also before whoever holds it has been told."""
        if not streams:
            return []
        marks = ", ".join("?" * len(streams))
        with self._engine.transaction() as db:
            rows = db.rows(
                f"SELECT id, robot, key, asked_by, role, method, path, body, expires, given, sent_by, sent_to,"
                f" connected_by, process, replaced_at, doubled_until"
                f" FROM commands JOIN robots ON robots.name = commands.robot"
                f" WHERE answered IS NULL AND expires > ? AND robot IN ({marks}) ORDER BY id",
                db.now(), *streams,
            )  # fmt: skip
            now = db.now()
            found = [(_Waiting(*row[:_FIELDS]), _Holder(*row[_FIELDS:])) for row in rows]
            _void(db, now, [waiting.id for waiting, _ in found if waiting.given > now])
            fresh = [each for each in found if _is_due(*each, now, streams)]
            db.many(
                "UPDATE commands SET sent = ?, sent_by = ?, sent_to = ? WHERE id = ?",
                [(now, holder.connected_by, holder.process, waiting.id) for waiting, holder in fresh],
            )
        return [waiting.as_due(now) for waiting, _ in fresh]

    def answer(self, robot: str, answer: Answer) -> None:
        """Keep an answer; only the first one counts, and one to an unknown command is ignored."""
        with self._engine.transaction() as db:
            db.run(
                "UPDATE commands SET answered = ?, outcome = ?, status = ?, headers = ?, answer = ?"
                " WHERE id = ? AND robot = ? AND answered IS NULL",
                db.now(), answer.outcome, answer.status, json_text(answer.headers), json_text(answer.body),
                answer.id, robot,
            )  # fmt: skip
            db.notify(COMMANDS)
        self._listener()

    def states(self, ids: Collection[int]) -> dict[int, CommandState]:
        """The states of commands by id; commands that were forgotten are left out."""
        if not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        with self._engine.transaction() as db:
            found = db.rows(
                f"SELECT id, doubled_until, sent, expires, outcome, status, headers, answer, given"
                f" FROM commands LEFT JOIN robots ON robots.name = commands.robot WHERE id IN ({marks})",
                *ids,
            )
            rows = [_StateRow(*row) for row in found]
            now = db.now()
            _void(db, now, [row.id for row in rows if row.given > now])
        return {row.id: row.as_state(now) for row in rows}

    def forget(self, after_s: float) -> None:
        """Forget commands that have been over for ``after_s``."""
        self.void_later()
        with self._engine.transaction() as db:
            db.run("DELETE FROM commands WHERE expires < ?", db.now() - int(after_s * _US))

    def void_later(self) -> None:
        """Let commands expire that were given later than now, before the clock goes on to when they were given."""
        with self._engine.transaction() as db:
            later = db.rows("SELECT id, given FROM commands WHERE given > ?", db.now())
            now = db.now()
            _void(db, now, [id for id, given in later if given > now])


def expire_commands(db: Transaction, robot: str) -> None:
    """Let the commands expire that a robot has not answered, whichever of them are over by the clock of this process:
    with SQLite that of the hub may be another one."""
    rows = db.rows("SELECT id FROM commands WHERE robot = ? AND answered IS NULL ORDER BY id", robot)
    _void(db, db.now(), [id for (id,) in rows])
    db.notify(COMMANDS)


def _is_due(command: _Waiting, holder: _Holder, now: int, streams: Mapping[str, str]) -> bool:
    """Return whether the stream of a command's robot, if it still is that robot's, is to hand the command on now."""
    return (
        command.given <= now < command.expires
        and command.sent_by != streams[command.robot] == holder.connected_by
        and _may_go(command, holder, now)
    )


def _may_go(command: _Waiting, holder: _Holder, now: int) -> bool:
    """Return whether the process that holds the stream may get a command. What another one has been sent, and perhaps
    carries out, waits until it is clear that it does not come back; no robot gets what was meant for another one.
    What stops a robot is for any that is there."""
    if lane_of(command.method, command.path, command.role) != "others":
        return True
    is_alone = holder.doubled_until <= now
    return is_alone and (command.sent_to in ("", holder.process) or holder.replaced_at <= now - _RETURN_US)


def _void(db: Transaction, now: int, ids: Collection[int]) -> None:
    """Let commands expire, also those that were given later than now, before the clock was set back."""
    db.many("UPDATE commands SET given = ?, expires = ? WHERE id = ?", [(now, now, id) for id in ids])


def _left_s(new: NewCommand, asked_at: float) -> float:
    """The time, in seconds, for which a command is still valid. What stops a robot is as good late as it was in time.

    Raises ``StorageUnavailableError`` if that is over.
    """
    if lane_of(new.method, new.path, new.role) in _STOPPING and bare_path(new.path) != "/robots/release":
        return new.expires_in_s
    waited_s = clock.steady() - asked_at
    if waited_s >= new.expires_in_s:
        raise StorageUnavailableError(
            f"the hub's database noted nothing for {waited_s:.1f} s, and the command was valid for"
            f" {new.expires_in_s:g} s: it was not carried out, and will not be"
        )
    return new.expires_in_s - waited_s


def _give(db: Transaction, new: NewCommand, asked_at: float) -> int | str | None:
    """One attempt of ``give``; None if the key was taken meanwhile."""
    before = find_by_key(db, new)
    now = db.now()
    if before is not None:
        if not before.frees_key(now) and not is_same(before, new):
            return f"idempotency key {shown_key(new)!r} was used for another command"
        if before.holds(now):
            return before.id
    left_s = _left_s(new, asked_at)  # read behind the database's clock: what comes in between is not added to it
    if why_not := _why_not(db, new, now):
        return why_not
    if before is not None:
        # Who waits for it goes by its id.
        db.run("UPDATE commands SET key = ? WHERE id = ?", f"{new.key} (over: {before.id})", before.id)
    rows = db.rows(
        f"INSERT INTO commands (robot, key, {', '.join(WHAT)}, given, expires)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (robot, key) DO NOTHING RETURNING id",
        new.robot, new.key, *what_of(new), now, now + int(left_s * _US),
    )  # fmt: skip
    return int(rows[0][0]) if rows else None


def _why_not(db: Transaction, new: NewCommand, now: int) -> str:
    """The reason why a robot gets no new command of this lane; empty if it gets one."""
    lane = lane_of(new.method, new.path, new.role)
    doubled = db.rows("SELECT 1 FROM robots WHERE name = ? AND doubled_until > ?", new.robot, now)
    if doubled and lane == "others":
        return two_robots(new.robot)
    waiting = db.rows(
        "SELECT method, path, role FROM commands WHERE robot = ? AND answered IS NULL AND expires > ? AND given <= ?",
        new.robot, now, now,
    )  # fmt: skip
    if sum(lane_of(*each) == lane for each in waiting) >= MOST_AT_ONCE[lane]:
        return f"{MOST_AT_ONCE[lane]} commands ({lane}) for robot {new.robot!r} wait already; try again later"
    return ""
