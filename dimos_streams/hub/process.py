"""A hub at work: its parts on one loop, and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket

from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import UserError
from dimos_streams.hub.asking import Asker
from dimos_streams.hub.batch_intake import BatchIntake
from dimos_streams.hub.command_streams import CommandStreams
from dimos_streams.hub.event_feed import EventFeed
from dimos_streams.hub.fleet_view import FleetView
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.settings import HubSettings
from dimos_streams.hub.storage.engines.engine import COMMANDS, EVENTS
from dimos_streams.hub.storage.engines.sqlite import SqliteEngine
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from dimos_streams.hub.threads import CONNECTIONS, HubThreads, in_thread
from dimos_streams.hub.upkeep import Upkeep
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.server import HttpServer
from dimos_streams.tool_stream.liveness.attention import Attention


class FleetHub:
    """One process of a hub. Use from one loop; ``stop`` may be called at any time, twice is fine."""

    def __init__(self, settings: HubSettings) -> None:
        self.settings = settings
        self.name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(3)}"
        self._server = HttpServer(
            settings.host, settings.port, ping_s=settings.ping_s, connections=settings.connections
        )
        self._to_undo = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """The URL at which this machine reaches it."""
        return self._server.url

    async def start(self) -> None:
        """Serve. Raises ``UserError`` for what a person can mend, and ``StorageUnavailableError``."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def wait(self) -> None:
        """Wait for ever, or until a part of the hub has failed for an unforeseen reason; then raise that."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """End all connections, and let go of the database."""
        await self._to_undo.aclose()

    async def _start(self) -> None:
        settings = self.settings
        if settings.token is None and not is_loopback(settings.host):
            raise UserError(
                f"serving on {settings.host!r}, which others reach, needs a token for operators: set --token-file or"
                " DIMOS_STREAMS_TOKEN"
            )
        self._server.bind()
        self._to_undo.callback(self._server.release)
        engine = open_engine(settings.database)
        storage = HubStorage(engine)
        self._to_undo.callback(storage.close)
        if isinstance(engine, SqliteEngine):
            engine.take()
        threads = HubThreads()
        self._to_undo.push_async_callback(threads.close)
        await in_thread(threads.others, storage.open)
        await in_thread(threads.others, engine.check_connections, CONNECTIONS)
        bounds = await in_thread(threads.others, storage.bounds)
        feed = EventFeed(storage, threads, bounds)
        self._to_undo.callback(feed.broadcast.close)
        await self._begin(self._parts(storage, threads, feed))

    def _parts(self, storage: HubStorage, threads: HubThreads, feed: EventFeed) -> HubParts:
        return HubParts(
            name=self.name,
            settings=self.settings,
            storage=storage,
            threads=threads,
            intake=BatchIntake(storage, threads.others, feed.wake, holds_up_orders=storage.engine.has_one_writer),
            feed=feed,
            streams=CommandStreams(storage, threads.orders, self.name),
            asker=Asker(storage, threads.orders),
            robots=FleetView(storage, threads.orders),
            connection_ends=ConnectionEnds(self.settings.send_timeout_s, self._server.abort),
        )

    async def _begin(self, parts: HubParts) -> None:
        loop = asyncio.get_running_loop()
        wakes = {EVENTS: (parts.feed.wake,), COMMANDS: (parts.streams.wake, parts.asker.wake)}

        def wake(channel: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                for each in wakes[channel]:
                    loop.call_soon_threadsafe(each)

        parts.storage.engine.listen(wake)
        parts.storage.commands.listen(lambda: wake(COMMANDS))
        upkeep = Upkeep(parts, self.url)
        await upkeep.look_around()
        works = (
            parts.intake.run(),
            parts.feed.run(),
            parts.streams.run(),
            parts.streams.keep(),
            parts.asker.run(),
            upkeep.trim(),
            upkeep.watch(),
        )
        self._tasks = [loop.create_task(work) for work in works]
        self._to_undo.push_async_callback(end_tasks_silently, *self._tasks)
        attention = Attention()  # robots are judged by the database's clock
        attention.start()
        self._to_undo.callback(attention.stop)
        from dimos_streams.hub.app import create_app

        await self._server.serve(create_app(parts, upkeep, lambda: attention.outdated_s))
        self._to_undo.push_async_callback(upkeep.leave)
        self._to_undo.push_async_callback(self._server.stop)
        self._to_undo.callback(parts.feed.broadcast.close)
        self._to_undo.callback(parts.streams.end)
        self._to_undo.callback(parts.asker.end)
