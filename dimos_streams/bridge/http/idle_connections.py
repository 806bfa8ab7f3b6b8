"""Connections that ask for nothing: uvicorn waits for a request's head for ever, and each one costs a descriptor."""

from __future__ import annotations

import asyncio

import uvicorn

from dimos_streams.bridge.http.http_protocol import BoundedProtocol

IDLE_BOUND_S = 10.0
"""A connection on which nothing is answered for longer is cut, however much it sends."""


async def cut_idle(server: uvicorn.Server) -> None:
    """Cut them, until cancelled. What is no HTTP any more has rules of its own."""
    while True:
        await asyncio.sleep(IDLE_BOUND_S / 4)
        for connection in list(server.server_state.connections):
            if isinstance(connection, BoundedProtocol) and connection.idle_s() > IDLE_BOUND_S:
                connection.transport.abort()
