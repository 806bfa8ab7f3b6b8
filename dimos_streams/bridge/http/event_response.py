"""Responses of server-sent events that are made for one client, and not read from a broadcast."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from fastapi.responses import StreamingResponse
from starlette.types import Send


class EventResponse(StreamingResponse):
    """A stream whose frames end with its connection, and not when they are collected some time later."""

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self._frames = frames
        super().__init__(frames, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def stream_response(self, send: Send) -> None:
        async with contextlib.aclosing(self._frames):
            await super().stream_response(send)
