"""The parts of a hub that its routes use."""

from __future__ import annotations

from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.hub.asking import Asker
from dimos_streams.hub.batch_intake import BatchIntake
from dimos_streams.hub.command_streams import CommandStreams
from dimos_streams.hub.event_feed import EventFeed
from dimos_streams.hub.fleet_view import FleetView
from dimos_streams.hub.settings import HubSettings
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads, in_thread
from dimos_streams.serving.server.connection_ends import ConnectionEnds

_REMEMBERED = 10_000
_SILENT_S = 12.0
"""Time, in seconds, after which a database that has noted nothing counts as away: each hub notes every 5 s."""


_UNANSWERED_S = 5.0
"""Time, in seconds, after which a database that owes an answer counts as away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubParts:
    """The parts of a hub, which all work on one loop; what waits for the database runs in ``threads``."""

    name: str
    """The name of this process of the hub, among those of one database."""
    settings: HubSettings
    storage: HubStorage
    threads: HubThreads
    intake: BatchIntake
    feed: EventFeed
    streams: CommandStreams
    asker: Asker
    robots: FleetView
    connection_ends: ConnectionEnds
    begun: NewestEntries[str, str] = field(default_factory=lambda: NewestEntries(_REMEMBERED))
    """The robots of calls that were begun here, by id: their events may not have come yet. Of others the database
    knows."""

    @property
    def trouble(self) -> str:
        """The reason why the database takes or gives nothing, as far as is known; empty if it does."""
        trouble = self.intake.trouble or self.feed.trouble or self.storage.engine.trouble
        if trouble:
            return trouble
        where = self.storage.engine.where
        if (silent_s := clock.monotonic() - self.storage.noted_at) >= _SILENT_S:
            return f"the hub's database {where} has taken nothing for {silent_s:.0f} s"
        if (unanswered_s := self.threads.unanswered_s) >= _UNANSWERED_S:
            return f"the hub's database {where} has not answered for {unanswered_s:.0f} s"
        return ""

    async def now_utime(self, *, for_order: bool = False) -> int:
        """The time by the database's clock, by which robots are heard of; an order waits for nobody who only looks.

        Raises ``StorageUnavailableError``.
        """
        return await in_thread(self.threads.orders if for_order else self.threads.pages, self.storage.now)
