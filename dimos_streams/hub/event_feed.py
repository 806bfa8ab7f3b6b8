"""The feed of a hub's events: what any hub has stored, given out to readers in its sequence."""

from __future__ import annotations

import asyncio
import logging

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.hub.event_pages import AGAIN_S, SequenceLog, StoragePages
from dimos_streams.hub.storage.rows import KeptRange, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads, in_thread
from dimos_streams.hub.wakeup import Wakeup
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.journal.entry import EncodedEntry, gap_entry
from dimos_streams.journal.query import Query

_FEED_EVENTS, _FEED_BYTES = 4096, 4 * 1024 * 1024
"""Maximum number and size, in bytes, of the events that are read from the database and handed to readers at once."""

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class EventFeed:
    """Reads what any hub has stored, in its sequence, and hands it to this hub's readers."""

    def __init__(self, storage: HubStorage, threads: HubThreads, bounds: KeptRange) -> None:
        self.log = SequenceLog(bounds)
        self.broadcast = Broadcast(self.log, StoragePages(storage, threads.pages, self.log, self.wake))
        self.trouble = ""
        """The reason why nothing can be read at the moment; empty if it can."""
        self._storage = storage
        self._executor = threads.others
        self._wakeup = Wakeup()

    def wake(self) -> None:
        """Note that there may be something new."""
        self._wakeup.wake()

    def note_first(self, first: int) -> None:
        """Note that events before a number are not kept any more."""
        self.log.bounds = self.log.bounds._replace(first=max(first, self.log.bounds.first))

    async def run(self) -> None:
        """Hand on what is new, until cancelled."""
        while True:
            try:
                while await self._read_on():
                    pass
                self.trouble = ""
            except StorageUnavailableError as error:
                self.trouble = str(error)
                _log.warning("events can't be read: %s", error)
                await asyncio.sleep(AGAIN_S)
            except Exception as error:  # readers wait for what comes after it
                self.trouble = f"internal error ({type(error).__name__})"
                _log.exception("events can't be read")
                await asyncio.sleep(AGAIN_S)
            await self._wakeup.wait()

    async def _read_on(self) -> bool:
        """Hand on a page; return whether there was any number behind the newest one that was read."""
        last = self.log.last_offset
        read = await in_thread(self._executor, self._storage.read, Query(last), _FEED_EVENTS, _FEED_BYTES)
        if read.first > last + 1:
            text = f"the events of numbers {last + 1} to {read.first - 1} were dropped before this hub read them"
            gap = gap_entry(read.first - 1, last + 1, read.first - 1, text, caller=None)
            self._hand_on([gap], gap.offset)
        if read.upto <= last:
            return False
        self._hand_on(read.entries, read.upto)
        return True

    def _hand_on(self, entries: list[EncodedEntry], upto: int) -> None:
        """Hand on all events up to a number; there may be none, where a database has lost the newest it had."""
        self.log.bounds = self.log.bounds._replace(last=upto)
        self.broadcast.publish(entries)
