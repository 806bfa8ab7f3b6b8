"""Events that came before one that is missing: each call keeps its own, within a budget of bytes of many calls."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.wire.unpacking import EventUnpacker

MAX_PENDING = 2048
"""Maximum number of events that a call keeps ahead of a missing one; more are dropped and asked for later."""
PROXY = "\0proxy"
"""The instance of what was said in the stead of a call's module; no instance on the bus can have this name."""


class ByteBudget:
    """The number of bytes that several buffers may hold together, and each of them alone."""

    def __init__(self, together: int, each: int) -> None:
        self._together, self._each = together, each
        self.used = 0
        """The number of bytes that all of them hold."""

    def take(self, size: int, held: int) -> bool:
        """Take bytes for a buffer that holds ``held`` already; return whether there was room for them."""
        if size > min(self._each - held, self._together - self.used):
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """Take back bytes that a buffer holds no more."""
        self.used -= size


class _EarlyEvent(NamedTuple):
    """An event as its bytes: Python's objects for its JSON may be twenty times as large."""

    instance: str
    """The instance as it is believed: ``PROXY``, or the one that the bytes name."""
    packed: bytes


class ReorderBuffer:
    """The events of one call that came too early, by seq. Its budget is charged for all that it holds."""

    __slots__ = ("_budget", "_order", "_unpacker", "events", "size")

    def __init__(self, budget: ByteBudget, unpacker: EventUnpacker) -> None:
        self._budget = budget
        self._unpacker = unpacker
        self.events: dict[int, _EarlyEvent] = {}
        """What it holds, by seq. Only to be looked at from outside: each event of a call is looked for in it."""
        self._order: list[int] = []
        self.size = 0
        """The size of all that it holds, in bytes."""

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    @property
    def first(self) -> int | None:
        """The smallest seq that it holds, or None if it is empty."""
        return self._order[0] if self._order else None

    @property
    def last(self) -> int | None:
        """The largest seq that it holds, or None if it is empty."""
        return self._order[-1] if self._order else None

    def keep(self, event: ToolEvent, packed: bytes) -> None:
        """Keep an event, with its bytes, if there is room."""
        if len(self._order) < MAX_PENDING and self._budget.take(len(packed), self.size):
            self.events[event.seq] = _EarlyEvent(event.instance, packed)
            bisect.insort(self._order, event.seq)
            self.size += len(packed)

    def read(self, seq: int) -> ToolEvent:
        """Return an event that it holds."""
        instance, packed = self.events[seq]
        return replace(self._unpacker.unpack(packed), seq=seq, instance=instance)

    def pop(self, seq: int) -> ToolEvent | None:
        """Remove and return an event; None if it does not hold it."""
        if seq not in self.events:
            return None
        event = self.read(seq)
        self._drop(seq)
        return event

    def drop_others(self, instance: str) -> int:
        """Drop all events that are neither of an instance nor of a proxy; return how many there were."""
        others = [seq for seq, early in self.events.items() if early.instance not in (instance, PROXY)]
        for seq in others:
            self._drop(seq)
        return len(others)

    def clear(self) -> None:
        """Drop all events."""
        self._budget.give_back(self.size)
        self.size = 0
        self.events.clear()
        self._order.clear()

    def _drop(self, seq: int) -> None:
        size = len(self.events.pop(seq).packed)
        del self._order[bisect.bisect_left(self._order, seq)]
        self.size -= size
        self._budget.give_back(size)
