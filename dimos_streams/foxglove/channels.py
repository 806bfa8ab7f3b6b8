"""The channels that viewers see, and who watches them. The only place, with ``services``, where the SDK's threads and
the loop meet."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dimos_streams.foxglove.conversion.schemas import schema_named

if TYPE_CHECKING:
    from foxglove import Channel, Context
    from foxglove.websocket import ChannelView, Client


class ShownChannel:
    """A channel that viewers can subscribe to."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._watchers: set[int] = set()

    @property
    def watched(self) -> bool:
        """True if any viewer has subscribed to it."""
        return bool(self._watchers)

    def show(self, value: dict[str, Any], utime: int) -> None:
        """Send an object to those who watch; nobody is waited for. ``utime`` is when it came, µs since the epoch."""
        data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        self._channel.log(data, log_time=utime * 1000)

    def count(self, client: int, *, watches: bool) -> None:
        """Note that a viewer watches it now, or no longer."""
        if watches:
            self._watchers.add(client)
        else:
            self._watchers.discard(client)


class Channels:
    """Advertises channels. Use from the loop only; it is the SDK's listener, too, whose threads it brings there."""

    def __init__(self, context: Context, on_change: Callable[[], None], keeps_up: Callable[[], bool]) -> None:
        """``on_change`` is called on the loop when a channel is watched that was not, or the other way round.
        ``keeps_up`` says whether what was shown is on its way to viewers."""
        self.keeps_up = keeps_up
        self._context = context
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._updates: dict[tuple[int, int], bool] = {}
        """The updates from the SDK's threads that were not applied yet: whether a viewer watches a channel, by their
        ids."""
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, str], ShownChannel] = {}
        self._by_id: dict[int, ShownChannel] = {}

    def advertise(self, topic: str, schema: str) -> ShownChannel:
        """The channel of a topic and a schema, which viewers see from then on."""
        from foxglove import Channel

        key = topic, schema
        if key not in self._shown:
            channel = Channel(topic, schema=schema_named(schema), context=self._context)
            self._shown[key] = self._by_id[channel.id()] = ShownChannel(channel)
        return self._shown[key]

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        """Take a subscription from a thread of the SDK."""
        self._put(channel.id, client.id, watches=True)

    def on_unsubscribe(self, client: Client, channel: ChannelView) -> None:
        """Take the end of a subscription from a thread of the SDK; also for each channel of a client that has
        gone."""
        self._put(channel.id, client.id, watches=False)

    def _put(self, channel: int, client: int, *, watches: bool) -> None:
        with self._lock:
            is_first = not self._updates
            self._updates[channel, client] = watches
        if is_first:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is shown anything any more
                self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        """Apply the updates of all threads at once, so that a viewer's quick changes cost one look in each turn of
        the loop."""
        with self._lock:
            updates, self._updates = self._updates, {}
        before = {channel for channel, shown in self._by_id.items() if shown.watched}
        for (channel, client), watches in updates.items():
            if channel in self._by_id:
                self._by_id[channel].count(client, watches=watches)
        if before != {channel for channel, shown in self._by_id.items() if shown.watched}:
            self._on_change()
