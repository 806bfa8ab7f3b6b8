"""Publishes what a log has onto a bus, at the pace at which it was recorded or another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.bus.sizes import MAX_CHANNEL_BYTES
from dimos_streams.errors import UserError
from dimos_streams.messages import registry
from dimos_streams.messages.codec import split_channel
from dimos_streams.recording.cut import LogPart, events_of
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.recorder import LCM_SELF_TEST
from dimos_streams.recording.steady_times import steady

_TURN = 64
"""The largest number of messages that are published in one go."""
_PAUSE_S = 0.001
"""The shortest wait that is worth it, in seconds."""


class Player:
    """Plays a part of logs, which are open and count as one."""

    def __init__(self, logs: Sequence[LogReader], part: LogPart, *, speed: float = 1.0) -> None:
        """``speed`` is a factor; raises ``UserError`` unless it is above 0."""
        if not speed > 0:
            raise UserError(f"speed is a factor above 0, not {speed!r}")
        self._logs = logs
        self._part = part
        self._speed = speed
        self.published = 0
        """The number of messages so far."""
        self.after_s = 0.0
        """The seconds from the first message to the newest, by the log's time."""
        self.channels: dict[str, None] = {}
        """The channels that were published on."""
        self.untyped: dict[str, int] = {}
        """The number of messages of types that are not known here, by channel: they are passed on as they are."""
        self.unpublishable: dict[str, int] = {}
        """The number of messages that no bus can carry, by channel: names have ``MAX_CHANNEL_BYTES`` at most."""

    async def play(
        self,
        bus: Bus,
        on_progress: Callable[[Player], None] | None = None,
        on_message: Callable[[str, bytes], None] | None = None,
    ) -> int:
        """Play once from the beginning and return the number of messages. ``on_message`` is called with each before
        it is sent."""
        start_utime: int | None = None
        began = clock.monotonic()
        before = self.published
        in_a_row = 0
        for event in steady(events_of(self._logs, self._part)):
            if event.channel == LCM_SELF_TEST:
                continue
            if start_utime is None:
                start_utime = event.utime
            self.after_s = (event.utime - start_utime) / 1e6
            ahead_s = began + self.after_s / self._speed - clock.monotonic()
            in_a_row += 1
            if ahead_s >= _PAUSE_S or in_a_row >= _TURN:
                in_a_row = 0
                await asyncio.sleep(max(0.0, ahead_s))
            if len(event.channel.encode()) > MAX_CHANNEL_BYTES:
                self.unpublishable[event.channel] = self.unpublishable.get(event.channel, 0) + 1
                continue
            if on_message is not None:
                on_message(event.channel, event.data)
            bus.publish(event.channel, event.data)
            self.published += 1
            self._note(event.channel)
            if on_progress is not None and in_a_row == 0:
                on_progress(self)
        return self.published - before

    def _note(self, channel: str) -> None:
        if channel in self.untyped:
            self.untyped[channel] += 1
        elif channel not in self.channels:
            self.channels[channel] = None
            if registry.find(split_channel(channel)[1]) is None:
                self.untyped[channel] = 1
