"""A robot for tests of shipping: a journal and its shipper."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator

from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.shipping.outflow import CurrentJournal
from dimos_streams.bridge.fleet.shipping.shipper import Shipper
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.journal.journal import Journal
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import event


class Robot:
    """A journal and its shipper."""

    def __init__(self, journal: Journal, hub: FakeHub, ring: int = 64) -> None:
        self.journal = journal
        self.hub = JournalBroadcast(journal, BroadcastLimits(ring_events=ring))
        self.troubles = Troubles(logging.getLogger("hub"), "http://hub")
        self.link = LinkContext(hub, self.troubles, random.Random(1))
        self.turns = 0
        """The number of times that the hub's stream of commands has begun or ended."""
        self.shipper = Shipper(self.link, CurrentJournal(self.hub), age_s=0.5, stream=lambda: self.turns)

    @property
    def name(self) -> str:
        return self.journal.identity.journal_id

    def happen(self, *seqs: int, size: int = 0) -> None:
        self.hub.publish(self.journal.append([event(seq, text=f"{seq}" + "x" * size) for seq in seqs]))

    @contextlib.asynccontextmanager
    async def shipping(self) -> AsyncIterator[None]:
        task = asyncio.get_running_loop().create_task(self.shipper.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def shipped(self, timeout_s: float = 600.0) -> None:
        async with asyncio.timeout(timeout_s):
            while self.shipper.state().behind or self.shipper.state().acknowledged is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def whole(first: int, last: int) -> list[tuple[int, str]]:
    return [(seq, f"{seq}") for seq in range(first, last + 1)]
