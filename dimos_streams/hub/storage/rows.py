"""The rows that go into a hub's storage and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dimos_streams.errors import DimosStreamsError, UserError

if TYPE_CHECKING:
    from dimos_streams.fleet.commands import Method, Outcome, Role

ROW_BYTES = 150
"""Bytes that an event takes in a database besides its JSON, about: the other columns, and the indexes."""
_MOST_DAYS = 36_500


class StorageUnavailableError(DimosStreamsError):
    """Raised if the database does not answer, or takes nothing: down, full, cut off. It may be different later."""


class WrongSchemaError(UserError):
    """Raised if the tables in the database are of another version than this hub's, or of another program."""


@dataclass(frozen=True, slots=True)
class RobotBatch:
    """Consecutive entries of one journal, as a robot has sent them."""

    robot: str
    journal: str
    entries: tuple[BatchEntry, ...]

    @property
    def size(self) -> int:
        """The most that its events take in a database, in bytes: a call's record may have its text twice."""
        return sum(ROW_BYTES + 3 * len(entry.body.encode(errors="replace")) for entry in self.entries)


class BatchEntry(NamedTuple):
    """An event, or a gap, that is to be stored."""

    first: int
    last: int
    """The last of the offsets that it covers: a gap may cover many."""
    call_id: str
    caller: str
    type: str
    body: str
    """The event's JSON as its bridge has it."""
    event: Mapping[str, Any]
    """The event, decoded."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer for a batch all of which is stored, now or before."""

    acknowledged: int


@dataclass(frozen=True, slots=True)
class NotNext:
    """The answer for a batch that begins behind the offset that would be next; nothing of it was stored."""

    acknowledged: int


@dataclass(frozen=True, slots=True)
class Conflicting:
    """The answer for a batch at one of whose offsets another event is stored; nothing of it was stored."""

    offset: int


TakeAnswer = Taken | NotNext | Conflicting


class KeptRange(NamedTuple):
    """The oldest sequence number that is kept, and the newest one; the oldest is one more if none is."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The bounds of what is kept. What is older goes, mostly a whole partition at a time."""

    days: float = 30.0
    """Maximum age, in days since the hub has stored it."""
    events: int = 20_000_000
    megabytes: int = 30_000
    """Maximum size, in 10^6 bytes: 1500 bytes for each event, of which an honest one takes 600 with its indexes, and
    its calls' records something. A usual disk has room for it."""
    command_s: float = 3600.0
    """Time, in seconds, for which ended commands are remembered, so that whoever asks again gets the same answer."""

    @property
    def max_bytes(self) -> int:
        """Maximum size in bytes."""
        return self.megabytes * 1_000_000

    def __post_init__(self) -> None:
        """Raise ``UserError`` for days before which there is no date."""
        if not 0.0 <= self.days <= _MOST_DAYS:
            raise UserError(f"a hub can't keep events for {self.days:g} days; valid are at most {_MOST_DAYS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotRow:
    """A robot that may connect, and what is known of it. Times are by the database's clock, in µs."""

    name: str
    added: int
    heard: int | None
    """Time at which any hub has last heard of it; None if none has."""
    connected: bool
    """True if it holds a stream of commands, at any hub."""
    doubled: bool
    """True if two processes have taken turns as this robot lately."""
    clock_us: int | None
    """Time by which its clock seems to be ahead of the hub's, as exact as a request is fast; None if not known."""
    version: str
    report: str
    """Its newest report, JSON; empty before the first one."""
    skills: str
    """Its skills, a JSON array; empty before it has reported them."""
    acknowledged: int | None
    """The offset up to which the journal that it reported is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommand:
    """A command that somebody gives."""

    robot: str
    key: str
    asked_by: str
    role: Role
    method: Method
    path: str
    body: str
    """The body as JSON, ``null`` without one."""
    expires_in_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCommand(NewCommand):
    """A command that its robot is to get; it expires ``expires_in_s`` from now on."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandState:
    """The state of a command."""

    id: int
    sent: bool
    """True if it was handed to the robot's stream at least once."""
    left_s: float
    """Time until it expires, in seconds."""
    outcome: Outcome | None
    status: int
    headers: str
    body: str
    doubled: bool
    """True if two processes have taken turns as its robot lately: only one of them was sent it."""


class RobotCallRow(NamedTuple):
    """A call of a robot, folded from its events. ``record`` is the JSON of a ``CallView``."""

    robot: str
    call_id: str
    first_seq: int
    closed: bool
    record: str
