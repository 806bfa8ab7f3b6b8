"""A recording, open to be looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

from dimos_streams.bridge.live.kinds import topic_infos
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.limits import JournalLimits
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import first_metadata
from dimos_streams.recording.tape import Tape
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.server import HttpServer
from dimos_streams.viewer.about import about_recording
from dimos_streams.viewer.app import create_app, guarded
from dimos_streams.viewer.bus import ReplayBus
from dimos_streams.viewer.index import Index
from dimos_streams.viewer.index_folder import index_folder
from dimos_streams.viewer.playback import Playback

HOST = "127.0.0.1"
MAX_CONNECTIONS = 256
EVERYTHING = JournalLimits(events=10**12, age_s=1e12, bytes=2**50)

OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Viewed:
    """A recording that is served."""

    playback: Playback
    url: str
    notes: tuple[str, ...]
    """Notes on what is missing or damaged, in words."""


@asynccontextmanager
async def viewed(
    logs: Sequence[LogReader], *, port: int = 0, on_progress: OnProgress = lambda offset: None
) -> AsyncIterator[Viewed]:
    """Serve logs, which are open and count as one, inside the block.

    ``on_progress`` gets the bytes that were read so far. Raises ``UserError`` for logs without events, and if the
    port is taken.
    """
    async with AsyncExitStack() as stack:
        server = HttpServer(HOST, port, connections=MAX_CONNECTIONS)
        server.bind()
        stack.callback(server.release)
        index = await _indexed(logs, stack, on_progress)
        about = about_recording(index, logs)
        bus = ReplayBus()
        await bus.open()
        stack.push_async_callback(bus.close)
        playback = Playback(index, bus)
        running = asyncio.create_task(playback.run(), name="playback")
        stack.push_async_callback(end_tasks_silently, running)
        live = LiveTopics(bus, topic_infos(index.channels, index.namespaces), utime=playback.utime)
        broadcast = JournalBroadcast(index.journal)
        stack.push_async_callback(server.stop)
        app = create_app(playback, broadcast, live, about, ConnectionEnds(abort=server.abort))
        await server.serve(guarded(app, HOST))
        stack.callback(broadcast.close)
        stack.callback(live.stop)
        stack.callback(playback.close)  # whoever waits for something new would hold the server up
        yield Viewed(playback, server.url, tuple(about["notes"]))


async def _indexed(logs: Sequence[LogReader], stack: AsyncExitStack, on_progress: OnProgress) -> Index:
    """The index, whose journal is in a folder that goes with the stack. Whoever is cancelled meanwhile does not wait
    for the rest of a large log."""
    journal = Journal(stack.enter_context(index_folder()) / "journal.sqlite", EVERYTHING)
    journal.open()
    stack.callback(journal.close)
    index = Index(Tape(logs), journal, first_metadata(logs[0]))
    with closing(index.read()) as steps:
        for offset in steps:
            on_progress(offset)
            await asyncio.sleep(0)
    return index
