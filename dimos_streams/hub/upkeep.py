"""The regular work of a hub on its database: it drops what is old, and looks which other hubs are there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dimos_streams import __version__
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.byte_bound import share_of
from dimos_streams.hub.threads import in_thread

_OTHERS_S = 5.0
_TRIM_S = 60.0

_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger, period_s=30.0)


class Upkeep:
    """Looks after the database of one hub, and knows what was seen of it last."""

    def __init__(self, parts: HubParts, url: str) -> None:
        """``url`` is the one at which others reach this hub."""
        self._parts = parts
        self._url = url
        self.others: list[tuple[str, str, str]] = []
        """The other hubs on the database: name, version and URL."""
        self.database_bytes = 0
        """The size of the database."""
        self._had_trouble = False
        self._due = 0
        """The bytes that are stored when it is time again to drop what is old, however little time has passed."""

    async def trim(self) -> None:
        """Drop what is old, again and again, until cancelled: the sooner the more comes."""
        await _again(self._trim, lambda: ends_within(_TRIM_S, self._parts.intake.until_bytes(self._due)))

    async def watch(self) -> None:
        """Look who else is there, again and again, until cancelled. This waits for no trimming: a database that takes
        no note of it counts as away."""
        await _again(self._watch, lambda: asyncio.sleep(_OTHERS_S))

    async def look_around(self) -> None:
        """Note that this hub is there, and which others are. Raises ``StorageUnavailableError``."""
        parts = self._parts
        others = await in_thread(parts.threads.others, parts.storage.others, parts.name, self._url, 3 * _OTHERS_S)
        for name, version, url in others:
            if version != __version__ and name not in {known for known, _, _ in self.others}:
                _logger.warning(
                    "hub %s at %s on the same database is of version %s, this one of %s",
                    name,
                    url,
                    version,
                    __version__,
                )
        self.others = others

    async def leave(self) -> None:
        """Note that this hub is there no longer, as far as that can be written down."""
        try:
            await in_thread(self._parts.threads.others, self._parts.storage.leave, self._parts.name)
        except DimosStreamsError as error:
            _logger.warning("other hubs are not told that this one ends: %s", error)

    async def _trim(self) -> None:
        parts = self._parts
        self._due = parts.intake.bytes + share_of(parts.settings.retention.max_bytes)
        bounds = await in_thread(parts.threads.upkeep, parts.storage.trim, parts.settings.retention)
        parts.feed.note_first(bounds.first)
        self.database_bytes = await in_thread(parts.threads.upkeep, parts.storage.engine.size)

    async def _watch(self) -> None:
        engine = self._parts.storage.engine
        self._had_trouble |= self._parts.trouble != ""
        await self.look_around()
        await self._parts.robots.all()
        engine.trouble = ""  # it takes what is written, and gives what is read
        if self._had_trouble and not self._parts.trouble:
            self._had_trouble = False
            _logger.warning("the hub's database %s works again", engine.where)


async def _again(work: Callable[[], Awaitable[None]], pause: Callable[[], Awaitable[object]]) -> None:
    """Do something again and again, also after it has failed."""
    while True:
        try:
            await work()
        except DimosStreamsError as error:
            _log.warning("the hub's database can't be looked after: %s", error)
        except Exception:  # the hub serves without it, too
            _log.exception("the hub's database can't be looked after because of a defect")
        await pause()
