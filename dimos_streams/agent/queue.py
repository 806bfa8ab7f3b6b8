"""The agent's one message queue: operators' words and the news of calls."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dimos_streams.agent.missions import Mission
from dimos_streams.tool_stream.event import ToolEvent


@dataclass(frozen=True, slots=True)
class OperatorWords:
    """What an operator said."""

    text: str
    missions: tuple[Mission, ...] = ()


@dataclass(frozen=True, slots=True)
class CallNews:
    """An event of a call that has been answered already, or of one that somebody else began for the agent."""

    event: ToolEvent
    missions: tuple[Mission, ...] = ()

    @property
    def wants_turn(self) -> bool:
        """Progress is for the record only."""
        return self.event.type != "progress"


QueueItem: TypeAlias = OperatorWords | CallNews


class QueueStatistics(NamedTuple):
    """Items now, and counts since the queue was made."""

    waiting: int
    taken: int
    coalesced: int
    """Progress that newer progress of its call replaced."""


class MessageQueue:
    """Bounded: ``put`` waits while ``capacity`` items wait, and so does the inbox, and in the end the bridge.

    Nothing is dropped but progress that newer progress of the same call replaces. Each item holds its missions
    until whoever took it releases them.
    """

    def __init__(self, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._items: OrderedDict[int, QueueItem] = OrderedDict()
        self._progress: dict[str, int] = {}
        self._numbers = itertools.count()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._taken = 0
        self._coalesced = 0

    async def put(self, item: QueueItem) -> None:
        """Append an item, or replace the waiting progress of its call; waits for room."""
        for mission in item.missions:
            mission.hold()
        try:
            self._drop_stale_progress(item)
            while len(self._items) >= self._capacity:
                self._room.clear()
                await self._room.wait()
        except asyncio.CancelledError:
            for mission in item.missions:
                mission.release()
            raise
        number = next(self._numbers)
        self._items[number] = item
        if isinstance(item, CallNews) and item.event.type == "progress":
            self._progress[item.event.call_id] = number
        self._arrived.set()

    async def take(self) -> list[QueueItem]:
        """All that waits, in order; waits for the first."""
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        items = list(self._items.values())
        self._items.clear()
        self._progress.clear()
        self._taken += len(items)
        self._room.set()
        return items

    def statistics(self) -> QueueStatistics:
        """What goes on."""
        return QueueStatistics(len(self._items), self._taken, self._coalesced)

    def _drop_stale_progress(self, item: QueueItem) -> None:
        if not isinstance(item, CallNews) or item.event.type != "progress":
            return
        stale = self._progress.pop(item.event.call_id, None)
        if stale is None:
            return
        for mission in self._items.pop(stale).missions:
            mission.release()
        self._coalesced += 1
