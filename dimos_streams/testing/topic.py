"""One topic of a run, as a test sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import ports_of
from dimos_streams.errors import UserError, suggest
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.recording.reader import LogReader
from dimos_streams.tool_stream.protocol.channels import OF_CALLS


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
        return None if self._data is None else self._decode(self._data)

    @property
    def messages(self) -> list[Any]:
        """The messages so far, read from the recording; pictures are not in it."""
        self._flush()
        with LogReader(self._recording) as log:
            return [self._decode(event.data) for event in log.events() if event.channel == self.channel]

    def receive(self, data: bytes) -> None:
        """Note a message; for the run."""
        self.count += 1
        self._data = data

    def _decode(self, data: bytes) -> Message:
        return decode(type_named(split_channel(self.channel)[1], self.channel), data, self.channel)


def channel_of(name: str, blueprint: Blueprint, heard: Iterable[str]) -> str:
    """The channel of a topic of a blueprint's modules or of channels that were heard; a channel's name means itself.

    Raises ``UserError`` for another topic.
    """
    if "#" in name:
        return name
    known = {split_channel(channel)[0]: channel for channel in (*OF_CALLS, *heard)}
    for spec in blueprint.modules.values():
        for port in ports_of(spec, module_class(spec)):
            if port.topic:  # else it is not wired
                known.setdefault(port.topic, port.channel)
    if name not in known:
        raise UserError(f"no topic is called {name!r}{suggest(name, known)} (valid: {', '.join(sorted(known))})")
    return known[name]
