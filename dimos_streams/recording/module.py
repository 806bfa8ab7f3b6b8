"""The recorder as a module of a blueprint."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from pydantic import Field

from dimos_streams.bus import Bus
from dimos_streams.common.process.disk import at_home, trouble_with
from dimos_streams.errors import DimosStreamsError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.recording.metadata import Metadata, describe
from dimos_streams.recording.recorder import Recorder, RecordingOptions
from dimos_streams.recording.selection import Selection

_TRY_AGAIN_S = 2.0


class RecorderConfig(ModuleConfig):
    """The settings of a recorder: what is recorded, and where."""

    path: Path
    """The log's path. A log that exists is appended to, so that a recorder that is started again loses nothing."""
    channels: tuple[str, ...] = ()
    """Patterns of topics (``/odom``, ``/robot1/*``) or channels (``*#sensor_msgs.Image``) that are recorded; if
    empty, all are."""
    without: tuple[str, ...] = ()
    """Patterns of topics or channels that are left out."""
    split_mb: float | None = Field(None, gt=0)
    """The size, in MB, at which a file is followed by another: ``a.lcmlog``, ``a.1.lcmlog`` and so on."""
    metadata: dict[str, Any] | None = None
    """The metadata of the recording; by default versions, seed and message types."""


class RecorderModule(Module):
    """Writes what the bus carries into an LCM log. Put it first: then it is stopped last."""

    config: RecorderConfig

    async def start(self) -> None:
        """See ``Module``. Raises ``UserError`` if the file can't be written."""
        bus = self.context.services.get(Bus)  # type: ignore[type-abstract]
        if bus is None:
            raise DimosStreamsError(f"module {self.name!r}: nobody offers a Bus in this process")
        config = self.config
        given = config.metadata
        metadata = describe(seed=self.context.seed) if given is None else Metadata.model_validate(given)
        options = RecordingOptions(
            path=at_home(config.path),
            selection=Selection(config.channels, config.without),
            split_bytes=None if config.split_mb is None else int(config.split_mb * 1e6),
            append=True,
            metadata=metadata,
        )
        self._recorder = Recorder(bus, options)
        # On the loop, reading a large old log would keep the heartbeats from going out.
        await self.run_blocking(self._recorder.open)
        self._recorder.start()

    async def run(self) -> None:
        """See ``Module``. A disk that refuses costs messages, not the run: it goes on when there is room again."""
        while True:
            try:
                await self._tend()
            except DimosStreamsError as error:
                self.log.error("not recording: %s", error)
                await self._resume(str(error))

    async def _resume(self, why: str) -> None:
        """Wait until there is room. The health says what is lost, from then on too."""
        recorder = self._recorder
        while True:
            self.health = f"not recording: {why}; {recorder.unwritten} messages lost so far"
            await asyncio.sleep(_TRY_AGAIN_S)
            # The next attempt comes soon, and `why` still holds: also where there is no thread to look.
            with contextlib.suppress(DimosStreamsError, OSError):
                if not await self.run_blocking(trouble_with, recorder.writer.path.parent):
                    recorder.resume()
                    break
        self.health = f"{recorder.unwritten} messages are missing: {why}"
        self.log.warning("recording again; %s", self.health)

    async def _tend(self) -> None:
        """Keep the file up to date. Raises ``DimosStreamsError`` when it can't be written."""
        flushing = asyncio.ensure_future(self._recorder.keep_flushed())
        try:
            while not flushing.done():
                if lost := self._recorder.lost:
                    self.health = f"{lost} messages came too fast to be recorded"
                await asyncio.wait([flushing], timeout=1.0)
            flushing.result()
        finally:
            flushing.cancel()
            with contextlib.suppress(asyncio.CancelledError, DimosStreamsError):
                await flushing

    async def stop(self) -> None:
        """See ``Module``. What the bus has brought is in the file then. Raises ``DimosStreamsError`` if it is not."""
        if hasattr(self, "_recorder"):
            self._recorder.stop()
            self._recorder.check()
