"""Responses of server-sent events that are made for one client, and not read from a broadcast."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping

from fastapi.responses import StreamingResponse
from starlette.types import Send

STREAM_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}
"""The headers of a stream: without them proxies keep events back, to compress or to collect them. The second is for
those that pass over ``no-transform``, such as Caddy 2.6, and the third is what nginx asks for."""


class EventResponse(StreamingResponse):
    """A stream whose frames end with its connection, and not when they are collected some time later."""

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self._frames = frames
        super().__init__(frames, media_type="text/event-stream", headers=STREAM_HEADERS)

    async def stream_response(self, send: Send) -> None:
        """Send the frames, and close their generator in any case."""
        async with contextlib.aclosing(self._frames):
            await super().stream_response(send)
