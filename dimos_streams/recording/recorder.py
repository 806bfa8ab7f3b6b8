"""Writes what a bus carries into a log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import DimosStreamsError
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.recording.selection import Selection
from dimos_streams.recording.writer import FLUSH_US, LogWriter

CAPACITY = 65_536
"""The number of messages that may wait to be written while the loop does something else."""

LCM_SELF_TEST = "LCM_SELF_TEST"
"""The channel on which every LCM library sends itself a message when it starts."""
ECHOES = "/doctor/"
"""The beginning of the channels on which `doctor` looks whether large messages arrive, which are nothing of a run."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """A recording's path and content."""

    path: Path
    selection: Selection = field(default_factory=Selection)
    """Channels that are recorded count as wanted: their publishers go to the trouble of making the messages."""
    split_bytes: int | None = None
    """A file that has reached the size is followed by another."""
    append: bool = False
    metadata: Metadata | None = None


class Recorder:
    """Records from ``start`` to ``stop``, in the order of publication, with the times of ``clock``."""

    def __init__(self, bus: Bus, options: RecordingOptions) -> None:
        preamble = (CHANNEL, options.metadata.encoded()) if options.metadata is not None else None
        self.writer = LogWriter(
            options.path, append=options.append, split_bytes=options.split_bytes, preamble=preamble
        )
        self._bus = bus
        self._selection = options.selection
        self._subscription: Subscription | None = None
        self.unwritten = 0
        """The number of messages lost so far because the disk refused them."""
        self._failure: OSError | None = None
        self._failed = asyncio.Event()

    @property
    def lost(self) -> int:
        """The number of messages that came faster than they could be written."""
        return self._subscription.statistics().dropped if self._subscription is not None else 0

    def open(self) -> None:
        """Open the file, which takes as long as it takes to read all of a log that is appended to. Raises
        ``UserError`` if the file can't be written."""
        self.writer.open()

    def start(self) -> None:
        """Begin. The file and the bus must be open."""
        self._subscription = self._bus.subscribe_all(self._on_message, capacity=CAPACITY, wants=self._wants)

    def stop(self) -> None:
        """End, with all in the file that was handled. Twice is fine."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            dropped = subscription.statistics().dropped
            subscription.close()
            if dropped:
                _logger.warning("%s: %d messages came too fast to be recorded", self.writer.path, dropped)
            if unused := self._selection.unused():
                _logger.warning("%s: nothing came that fits %s", self.writer.path, ", ".join(unused))
        try:
            self.writer.close()
        except OSError as error:
            self._fail(error)

    def check(self) -> None:
        """Raise ``DimosStreamsError`` if the file could not be written."""
        if self._failure is not None:
            why = f"{self.writer.part} can't be written: {self._failure.strerror}"
            raise DimosStreamsError(why) from self._failure

    def resume(self) -> None:
        """Go on with the file after a failure. Raises ``DimosStreamsError`` if that is not possible."""
        self._failure = None
        self._failed.clear()
        try:
            self.unwritten += self.writer.resume()
        except OSError as error:
            self._fail(error)
        self.check()

    async def keep_flushed(self) -> None:
        """Keep the file up to date while nothing comes. Raises ``DimosStreamsError`` when it can't be written."""
        while True:
            try:
                async with asyncio.timeout(FLUSH_US / 1e6):
                    await self._failed.wait()
            except TimeoutError:
                self._flush()
            self.check()

    def _wants(self, channel: str) -> bool:
        return self._selection(channel) and channel != LCM_SELF_TEST and not channel.startswith(ECHOES)

    def _flush(self) -> None:
        try:
            self.writer.flush()
        except OSError as error:
            self._fail(error)

    def _on_message(self, channel: str, data: bytes) -> None:
        if self._failure is not None:
            self.unwritten += 1
            return
        try:
            self.writer.write(clock.utime(), channel, data)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self._failed.set()


@asynccontextmanager
async def recording(bus: Bus, options: RecordingOptions) -> AsyncIterator[Recorder]:
    """Record what the bus carries inside the block. A file that can't be written any more is reported at the end.

    In virtual time nothing waits for the disk: a run with a recording takes the steps that one without takes.
    """
    recorder = Recorder(bus, options)
    recorder.open()
    recorder.start()
    flushing = None if clock.is_virtual() else asyncio.create_task(recorder.keep_flushed(), name="recording")
    try:
        yield recorder
    finally:
        recorder.stop()
        if flushing is not None:
            await end_tasks_silently(flushing)
    recorder.check()
