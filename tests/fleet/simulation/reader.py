"""A reader of all events of a fleet, which goes on behind the newest number that it has, whatever breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dimos_streams.client.event_stream.sse_parser import SseParser
from tests.fleet.simulation.asgi import Exchange
from tests.fleet.simulation.hub import HubDownError, SimulatedHub

_AGAIN_S = 0.5


class Reader:
    """Reads until it is cancelled."""

    def __init__(self, hub: SimulatedHub) -> None:
        self.read: list[tuple[int, dict[str, Any]]] = []
        """The numbers and the events that it got since it began, or began anew."""
        self._hub = hub
        self._copies = 0
        """The number of times that the hub's database had been put back when it began to read: then numbers stand for
        other events, and readers are to begin anew."""

    @property
    def last(self) -> int:
        """The newest number that it has."""
        return self.read[-1][0] if self.read else 0

    async def run(self) -> None:
        """Read, and ask again behind what it has."""
        while True:
            if self._copies != self._hub.copies:
                self._copies = self._hub.copies
                self.read.clear()
            exchange = Exchange("GET", f"/tool_streams?from={self.last + 1}")
            serving = asyncio.ensure_future(self._serve(exchange))
            try:
                parser = SseParser()
                async for piece in exchange.pieces():
                    events = [event for event in parser.feed(piece) if event.type == "tool_stream"]
                    self.read += [(int(event.id), json.loads(event.data)) for event in events]
            finally:
                exchange.leave()
            await serving
            await asyncio.sleep(_AGAIN_S)

    async def _serve(self, exchange: Exchange) -> None:
        try:
            await self._hub.serve(exchange)
        except HubDownError:
            exchange.cut()
