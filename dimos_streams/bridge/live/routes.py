"""``GET /live`` and ``WS /live``."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, WebSocket

from dimos_streams.bridge.live.socket import serve
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.serving.openapi import refusals
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.seats import Seats

PATH = "/live"
MAX_VIEWERS = 64
"""Maximum number of viewers at a time."""


def mount_live(app: FastAPI, live: LiveTopics, connection_ends: ConnectionEnds) -> None:
    """Add the routes to an app."""
    seats = Seats(MAX_VIEWERS)

    @app.get(PATH, responses=refusals())
    async def live_topics() -> dict[str, Any]:
        return {"topics": live.listed()}

    @app.websocket(PATH)
    async def watch(socket: WebSocket) -> None:
        async with seats.accept(socket) as has_seat:
            if has_seat:
                await serve(socket, live, connection_ends)
