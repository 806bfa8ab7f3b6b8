"""One topic of a run, as a test sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.recording.reader import LogReader


class Topic:
    """The messages that have come on one topic."""

    def __init__(self, channel: str, recording: Path, flush: Callable[[], None]) -> None:
        self.channel = channel
        self.count = 0
        self._data: bytes | None = None
        self._recording = recording
        self._flush = flush

    @property
    def last(self) -> Any:
        """The newest message, or None before the first."""
        return None if self._data is None else self._decoded(self._data)

    @property
    def messages(self) -> list[Any]:
        """The messages so far, read from the recording; pictures are not in it."""
        self._flush()
        with LogReader(self._recording) as log:
            return [self._decoded(event.data) for event in log.events() if event.channel == self.channel]

    def receive(self, data: bytes) -> None:
        """Note a message; for the run."""
        self.count += 1
        self._data = data

    def _decoded(self, data: bytes) -> Message:
        return decode(type_named(split_channel(self.channel)[1], self.channel), data, self.channel)
