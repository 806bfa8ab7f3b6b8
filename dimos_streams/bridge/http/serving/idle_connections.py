"""Connections that ask for nothing: uvicorn waits for a request's head for ever, and each one costs a descriptor."""

from __future__ import annotations

import asyncio

import uvicorn

from dimos_streams.bridge.http.serving.protocol import BoundedProtocol

IDLE_BOUND_S = 10.0
"""A connection that has begun to ask, or never has, and on which nothing is answered for longer is cut, however much
it sends."""
KEEP_ALIVE_S = 75
"""A connection that was answered may ask again within this. Longer than clients keep an idle connection (httpx: 5 s,
aiohttp: 15 s): who of both closes first must be the client, since a request that crosses the server's end is lost."""


async def cut_idle(server: uvicorn.Server) -> None:
    """Cut them, until cancelled. What is no HTTP any more has rules of its own."""
    while True:
        await asyncio.sleep(IDLE_BOUND_S / 4)
        for connection in list(server.server_state.connections):
            if isinstance(connection, BoundedProtocol) and connection.idle_s() > _bound_s(connection):
                connection.transport.abort()


def _bound_s(connection: BoundedProtocol) -> float:
    return KEEP_ALIVE_S if connection.is_kept_alive else IDLE_BOUND_S
