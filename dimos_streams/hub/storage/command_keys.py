"""The idempotency keys of commands: which command has a key, and whether another one may have it."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams.common.json.canonical import is_same_json
from dimos_streams.common.json.reading import parse_json
from dimos_streams.fleet.commands import Method, Outcome, Role, began_nothing, is_last_word
from dimos_streams.hub.storage.engines.engine import Transaction
from dimos_streams.hub.storage.rows import NewCommand

WHAT = ("asked_by", "role", "method", "path", "body")
"""The columns that must be the same in two commands of one key."""


class CommandOfKey(NamedTuple):
    """The command that has a key now."""

    id: int
    sent: int | None
    given: int
    expires: int
    outcome: Outcome | None
    status: int
    answer: str
    asked_by: str
    role: Role
    method: Method
    path: str
    body: str

    def frees_key(self, now: int) -> bool:
        """Return whether the command has begun nothing, so that its key may be used for another one."""
        if self.outcome is None:
            return self.sent is None and not self._is_valid(now)
        return began_nothing(self.outcome, self.status)

    def holds(self, now: int) -> bool:
        """Return whether the same command, given again, is this one, with its answer."""
        if self.outcome is None:
            return self._is_valid(now)
        return is_last_word(self.outcome, self.status, parse_json(self.answer))

    def _is_valid(self, now: int) -> bool:
        return self.given <= now < self.expires


def find_by_key(db: Transaction, new: NewCommand) -> CommandOfKey | None:
    """The command that has the key of a new one, None if there is none."""
    rows = db.rows(
        f"SELECT {', '.join(CommandOfKey._fields)} FROM commands WHERE robot = ? AND key = ?", new.robot, new.key
    )
    return CommandOfKey(*rows[0]) if rows else None


def what_of(command: NewCommand | CommandOfKey) -> tuple[str, ...]:
    """The values of ``WHAT`` of a command."""
    return command.asked_by, command.role, command.method, command.path, command.body


def is_same(one: NewCommand | CommandOfKey, other: NewCommand | CommandOfKey) -> bool:
    """Return whether two commands of one key ask for the same; 1 and 1.0 are one number, as at a robot's bridge."""
    *how, body = what_of(one)
    *other_how, other_body = what_of(other)
    return how == other_how and is_same_json(body, other_body)


def shown_key(new: NewCommand) -> str:
    """The key that whoever asks has given."""
    body = parse_json(new.body)
    given = body.get("idempotency_key") if isinstance(body, dict) else None
    return given if isinstance(given, str) else new.key
