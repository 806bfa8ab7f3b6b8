"""Waiting for what velocity gates say: a hold counts once they have confirmed it, not once it was sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from dimos_streams import clock
from dimos_streams.common.tasks import ends_within
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory


class GateConfirmation:
    """Waits for heartbeats of a directory's modules, gates among them."""

    def __init__(self, directory: ModuleDirectory | None) -> None:
        """Without a ``directory`` nothing is heard."""
        self._directory = directory

    async def wait(
        self, answer: Callable[[], HoldView], settled: Callable[[HoldView], bool], until: float
    ) -> HoldView:
        """Return the gates' first answer that is ``settled``, or the one that they give at ``until``."""
        with self.listening() as heard:
            while True:
                view = answer()
                if settled(view) or clock.monotonic() >= until:
                    return view
                await heard.wait(until)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Heard]:
        """Listen for as long as this is entered."""
        heard = Heard()
        end = self._directory.listen(lambda status: heard.note()) if self._directory is not None else lambda: None
        try:
            yield heard
        finally:
            end()


class Heard:
    """Says when the next heartbeat has come."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def note(self) -> None:
        """A heartbeat has come."""
        self._event.set()

    async def wait(self, until: float) -> None:
        """Wait for a heartbeat that comes from now on, until this time at most."""
        self._event.clear()
        await ends_within(until - clock.monotonic(), self._event.wait())
