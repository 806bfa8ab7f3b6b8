"""An event of a tool stream, as code handles it."""

from __future__ import annotations

import enum
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

MAX_SEQ = 2**30
"""The largest valid seq; there is room in its field for whatever follows."""
MIN_UTIME, MAX_UTIME = -(2**63), 2**63 - 1
"""The bounds of an event's time, as its field and databases have them. A machine whose clock was never set may be
before 1970."""

EventType = Literal["open", "update", "progress", "close", "gap"]
EVENT_TYPES = frozenset({"open", "update", "progress", "close"})
"""The types of a publisher's events. ``gap`` is made by readers, for events that can't be had any more."""


class Outcome(enum.StrEnum):
    """The outcome of a call: how it ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    REJECTED = "rejected"


OUTCOMES = tuple(Outcome)  # no set: what is looked up may not be hashable


@dataclass(slots=True, kw_only=True)  # frozen for type checkers: at run time an event would take three times as long
class ToolEvent:
    """One event of a call's tool stream. ``seq`` counts 1..n; ``open`` is first, ``close`` last. An event never
    changes."""

    utime: Final[int]
    """The time at which it happened, in µs since the Unix epoch, by the clock of the process that it comes from."""
    call_id: Final[str]
    seq: Final[int]
    type: Final[EventType]
    module: Final[str]
    skill: Final[str]
    caller: Final[str]
    text: Final[str]
    data: Final[Mapping[str, Any]] = field(default_factory=dict)
    """The data that go with the text; those of a ``close`` include ``outcome``, and ``result`` if there is one."""
    robot: Final[str] = field(default="")
    """The robot that it is from, as a hub tells it; empty at a robot's own bridge."""
    instance: Final[str] = field(default="", compare=False, repr=False)
    """The instance of its module that writes the stream. It is known on the bus only, and empty elsewhere."""
    of_agent: Final[bool] = field(default=True, compare=False, repr=False)
    """False if a program that has passed it on knows that its module is no agent, even if its skill is named as an
    agent's is."""

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the call, or None before its close."""
        return Outcome(self.data.get("outcome", Outcome.FAILED)) if self.type == "close" else None

    def to_dict(self) -> dict[str, Any]:
        """The fields as they are served over HTTP."""
        # Not a loop over the names: each event passes here, and that takes twice as long.
        fields = {
            "utime": self.utime,
            "call_id": self.call_id,
            "seq": self.seq,
            "type": self.type,
            "module": self.module,
            "skill": self.skill,
            "caller": self.caller,
            "text": self.text,
            "data": dict(self.data),
        }
        return {**fields, "robot": self.robot} if self.robot else fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ToolEvent:
        """The inverse of ``to_dict``. Raises ``ValueError`` for fields that are missing, of the wrong type, or
        numbers that no event has."""
        try:
            event = cls(**fields)
        except TypeError as error:
            raise ValueError(f"not a tool stream event: {error}") from error
        if not all(map(isinstance, _served_values(event), SERVED_FIELDS.values())):
            name = next(name for name, kind in SERVED_FIELDS.items() if not isinstance(getattr(event, name), kind))
            raise ValueError(f"not a tool stream event: {name} is {getattr(event, name)!r}")
        if event.type not in EVENT_TYPES and event.type != "gap":
            raise ValueError(f"not a tool stream event: type is {event.type!r}")
        least = 0 if event.type == "gap" else 1  # a gap in offsets belongs to no call, and has no seq
        most = last_seq_of(event.type)
        if isinstance(event.seq, bool) or not least <= event.seq <= most:
            raise ValueError(f"not a tool stream event: seq is {event.seq!r}; valid: {least} to {most}")
        if isinstance(event.utime, bool) or not MIN_UTIME <= event.utime <= MAX_UTIME:
            raise ValueError(f"not a tool stream event: utime is {event.utime!r}; valid: {MIN_UTIME} to {MAX_UTIME}")
        if event.type == "close" and event.data.get("outcome", Outcome.FAILED) not in OUTCOMES:
            valid = ", ".join(OUTCOMES)
            raise ValueError(f"not a tool stream event: outcome is {event.data['outcome']!r}; valid: {valid}")
        return event


def last_seq_of(type: str) -> int:
    """Return the largest valid seq of a type of event: the close that a bridge makes for a module stands behind the
    last event that the module can have sent."""
    return MAX_SEQ + (type == "close")


SERVED_FIELDS: Final[Mapping[str, type]] = {
    "utime": int,
    "call_id": str,
    "seq": int,
    "type": str,
    "module": str,
    "skill": str,
    "caller": str,
    "text": str,
    "data": dict,
    "robot": str,
}
"""The fields that are served over HTTP, with their types in JSON. Those of a robot's own bridge have no ``robot``."""
_served_values = operator.attrgetter(*SERVED_FIELDS)
