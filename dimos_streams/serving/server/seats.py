"""A limit on the number of clients of a WebSocket at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.websockets import WebSocket

from dimos_streams.common.http.bearer import SUBPROTOCOL

TRY_AGAIN_LATER = 1013


class Seats:
    """The seats for clients. A client takes one before it is accepted, which takes a while: however many come at
    once, no more get in.

    Use from one loop only.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @asynccontextmanager
    async def accept(self, socket: WebSocket) -> AsyncIterator[bool]:
        """Accept a client for the time of the block. Yields False if all seats are taken: the client was then told
        so, as pages can't read why a connection was refused, and let go."""
        if self._taken >= self._most:
            await _accept(socket)
            await socket.close(TRY_AGAIN_LATER, f"{self._most} watch already")
            yield False
            return
        self._taken += 1
        try:
            await _accept(socket)
            yield True
        finally:
            self._taken -= 1


async def _accept(socket: WebSocket) -> None:
    """Accept a client, with the one subprotocol that is spoken here if it offers that one."""
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope.get("subprotocols", ()) else None)
