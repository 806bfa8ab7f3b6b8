"""Frames of detections as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from dimos_streams import clock
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.streams import In


async def fresh_frames(
    detections: In[Detection2DArray], patience_s: float
) -> AsyncGenerator[Detection2DArray | None, None]:
    """Each frame from now on whose stamp is newer than those before; None after every ``patience_s`` without one.

    A camera that is frozen may repeat its last picture: such frames count for nothing. Does not end by itself.
    """
    reader = detections.reader()
    newest, deadline = 0, clock.monotonic() + patience_s
    try:
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await reader.next()
            except TimeoutError:
                deadline = clock.monotonic() + patience_s
                yield None
                continue
            stamp = utime_of(message.header)
            if stamp > newest:
                newest, deadline = stamp, clock.monotonic() + patience_s
                yield message
    finally:
        detections.release(reader)
