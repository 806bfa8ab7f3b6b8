"""A bus that carries what a recording shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Unpack

from dimos_streams.bus.memory import MemoryBus
from dimos_streams.bus.subscription import Handler, Subscription, SubscriptionOptions
from dimos_streams.errors import UserError
from dimos_streams.recording.format import LogEvent


class ReplayBus(MemoryBus):
    """A memory bus on which a new subscription gets the newest message there is: it may have come long ago, and
    nothing comes while the recording stands still."""

    def __init__(self) -> None:
        super().__init__()
        self.show_newest: Callable[[str], None] = lambda channel: None
        """Puts the newest message of a channel onto the bus."""

    def replay(self, event: LogEvent) -> None:
        """Hand on a recorded message, if anybody wants it. What no bus carries is left out."""
        if self.has_subscribers(event.channel):
            try:
                self.publish(event.channel, event.data)
            except UserError:
                return  # its channel has no name that a bus has

    def subscribe(self, channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        """See ``Bus``."""
        subscription = super().subscribe(channel, handler, **options)
        asyncio.get_running_loop().call_soon(self.show_newest, channel)
        return subscription
