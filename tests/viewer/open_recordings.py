"""Recordings that are open to be looked at."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.journal.journal import Journal
from dimos_streams.operator.messages.run import MonitorSnapshot
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import first_metadata
from dimos_streams.recording.tape import Tape
from dimos_streams.viewer.index import Index
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.recording import EVERYTHING, viewed


@contextmanager
def indexed(*paths: Path) -> Iterator[Index]:
    """The index of logs, with its journal in memory."""
    with ExitStack() as stack:
        logs = [stack.enter_context(LogReader(path)) for path in paths]
        journal = Journal(None, EVERYTHING)
        journal.open()
        stack.callback(journal.close)
        index = Index(Tape(logs), journal, first_metadata(logs[0]))
        for _ in index.read():
            pass
        yield index


def state_at(playback: Playback, utime: int) -> MonitorSnapshot:
    """What is shown at a moment."""
    playback.show(utime)
    return Collector(playback.world).snapshot(0)


@contextmanager
def served_in_a_thread(path: Path) -> Iterator[str]:
    """Where a recording is served, for browsers, which have a loop of their own."""
    url: queue.Queue[str] = queue.Queue()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        with LogReader(path) as log:
            async with viewed([log]) as shown:
                url.put(shown.url)
                await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield url.get(timeout=30)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()
