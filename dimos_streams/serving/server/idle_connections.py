"""Connections that ask for nothing: uvicorn waits for a request's head for ever, and each one costs a descriptor."""

from __future__ import annotations

import asyncio

import uvicorn

from dimos_streams.serving.server.protocol import BoundedProtocol

IDLE_BOUND_S = 10.0
"""Time, in seconds, without an answer after which a connection that has begun to ask, or never has, is cut, however
much it sends."""
KEEP_ALIVE_S = 75
"""Time, in seconds, within which a connection that was answered may ask again. Longer than clients keep an idle
connection (httpx: 5 s, aiohttp: 15 s): the client must close it first, since a request that crosses the server's end
is lost."""


async def cut_idle(server: uvicorn.Server) -> None:
    """Cut idle connections, until cancelled. A connection that is not HTTP any more has rules of its own."""
    while True:
        await asyncio.sleep(IDLE_BOUND_S / 4)
        for connection in list(server.server_state.connections):
            if isinstance(connection, BoundedProtocol) and connection.idle_s() > _bound_s(connection):
                connection.transport.abort()


def _bound_s(connection: BoundedProtocol) -> float:
    return KEEP_ALIVE_S if connection.is_kept_alive else IDLE_BOUND_S
