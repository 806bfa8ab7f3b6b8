"""Connections that ask for nothing: uvicorn waits for a request's head for ever, and each one costs a descriptor."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn

from dimos_streams import clock

IDLE_BOUND_S = 10.0
"""A connection on which nothing is answered for longer is cut."""


async def cut_idle(server: uvicorn.Server) -> None:
    """Cut them, until cancelled."""
    idle_since: dict[Any, float] = {}
    while True:
        await asyncio.sleep(IDLE_BOUND_S / 4)
        now = clock.monotonic()
        idle = {connection for connection in server.server_state.connections if not _answers(connection)}
        idle_since = {connection: idle_since.get(connection, now) for connection in idle}
        for connection, since in idle_since.items():
            if now - since > IDLE_BOUND_S and connection.transport is not None:
                connection.transport.abort()


def _answers(connection: Any) -> bool:
    """Whether a request on the connection is being answered; what is no HTTP any more has rules of its own."""
    if not hasattr(connection, "cycle"):
        return True
    return connection.cycle is not None and not connection.cycle.response_complete
