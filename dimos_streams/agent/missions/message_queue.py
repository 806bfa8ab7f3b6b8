"""The agent's one message queue: operators' input, updates of calls, notices of the agent itself."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dimos_streams.agent.missions.mission import Mission, all_ended, release_all, retain_all
from dimos_streams.agent.models.protocol import Speaker
from dimos_streams.tool_stream.event import ToolEvent


@dataclass(frozen=True, slots=True)
class OperatorInput:
    """An input: what an operator said, or an agent that delegates."""

    text: str
    missions: tuple[Mission, ...] = ()
    """The missions that it belongs to; the one that it has begun comes first."""
    speaker: Speaker = "operator"
    """``task`` if it is what a sub-agent is to do, which no operator says."""
    now: bool = False
    """True if it goes before all that waits, in a turn of its own."""

    @property
    def withdrawn(self) -> bool:
        """True if the mission that it has begun was ended; those that it was given to may go on."""
        return all_ended(self.missions[:1])

    @property
    def wants_turn(self) -> bool:
        """True unless the input was withdrawn."""
        return not self.withdrawn


@dataclass(frozen=True, slots=True)
class CallUpdate:
    """An event of a call that has been answered already, or of one that somebody else began for the agent."""

    event: ToolEvent
    missions: tuple[Mission, ...] = ()
    offset: int = 0
    """The offset of the event in the journal; 0 for an event that is not from there."""
    ended_by_agent: bool = False
    """True if it closes a call whose end all its missions wanted; see ``OpenCall``."""

    @property
    def wants_turn(self) -> bool:
        """True unless it is for the record only, as progress is, and as all is that becomes of a mission that was
        ended."""
        return self.event.type != "progress" and not all_ended(self.missions)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of the agent itself to its model: that it was restarted, what a sub-agent has to say."""

    text: str
    missions: tuple[Mission, ...] = ()
    wants_turn: bool = True


QueueItem: TypeAlias = OperatorInput | CallUpdate | Notice


def has_new_input(item: QueueItem) -> bool:
    """Return whether an item has input that the model will hear."""
    return isinstance(item, OperatorInput) and bool(item.missions) and not item.withdrawn


def is_over(item: QueueItem) -> bool:
    """Return whether an item is only for the record, because its missions were ended: no pause keeps it waiting."""
    return all_ended(item.missions) or (isinstance(item, OperatorInput) and item.withdrawn)


class MessageQueue:
    """A bounded queue: ``put`` waits while ``capacity`` items wait; so the event reader waits too, and in the end the
    bridge.

    Nothing is dropped but progress that newer progress of the same call replaces. Each item holds its missions until
    whoever took it releases them.
    """

    def __init__(self, capacity: int = 1000, on_arrival: Callable[[], None] = lambda: None) -> None:
        self.capacity = capacity
        self.on_arrival = on_arrival
        """Called when something has arrived."""
        self._items: OrderedDict[int, QueueItem] = OrderedDict()
        self._progress: dict[str, int] = {}
        self._numbers = itertools.count()
        self._room = asyncio.Event()
        self._turn = asyncio.Lock()
        """Held by the one that waits for room: those that come later wait behind it."""

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: QueueItem) -> None:
        """Append an item, or replace the waiting progress of its call; wait for room, behind those that wait
        already."""
        retain_all(item.missions)
        try:
            async with self._turn:
                while len(self._items) - (self._stale_progress(item) is not None) >= self.capacity:
                    self._room.clear()
                    await self._room.wait()
                self._drop_stale_progress(item)
                self._append(item)
        except asyncio.CancelledError:
            release_all(item.missions)
            raise

    def put_nowait(self, item: QueueItem) -> None:
        """Append one of the few items that the agent makes itself, beyond the capacity if need be."""
        retain_all(item.missions)
        self._append(item)

    def take_nowait(self) -> list[QueueItem]:
        """Take and return all that waits, in order; perhaps nothing. Input that can't wait comes alone."""
        if urgent := self.take_where(lambda item: isinstance(item, OperatorInput) and item.now):
            return urgent
        return self.take_all()

    def take_all(self) -> list[QueueItem]:
        """Take and return all that waits, in order, input that can't wait among it."""
        items = list(self._items.values())
        self._items.clear()
        self._progress.clear()
        self._room.set()
        return items

    def take_where(self, condition: Callable[[QueueItem], bool]) -> list[QueueItem]:
        """Take and return the items that fulfil a condition, in order; the others stay."""
        chosen = {number: item for number, item in self._items.items() if condition(item)}
        for number, item in chosen.items():
            del self._items[number]
            if isinstance(item, CallUpdate) and self._progress.get(item.event.call_id) == number:
                del self._progress[item.event.call_id]
        self._room.set()
        return list(chosen.values())

    def oldest_offset(self) -> int | None:
        """The offset of the oldest update that waits, or None if none does."""
        if not self._items:
            return None
        offsets = (item.offset for item in self._items.values() if isinstance(item, CallUpdate))
        return next((offset for offset in offsets if offset), None)

    def _append(self, item: QueueItem) -> None:
        number = next(self._numbers)
        self._items[number] = item
        if isinstance(item, CallUpdate) and item.event.type == "progress":
            self._progress[item.event.call_id] = number
        self.on_arrival()

    def _stale_progress(self, item: QueueItem) -> int | None:
        """The number of the waiting progress that an item replaces, or None if it replaces none."""
        if not isinstance(item, CallUpdate) or item.event.type != "progress":
            return None
        return self._progress.get(item.event.call_id)

    def _drop_stale_progress(self, item: QueueItem) -> None:
        stale = self._stale_progress(item)
        if stale is not None:
            release_all(self._items.pop(stale).missions)
