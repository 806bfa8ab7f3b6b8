"""Frames of detections as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.timeline import Timeline
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.streams import In


@dataclass(frozen=True, slots=True)
class DetectionFrame:
    """The detections of one picture."""

    message: Detection2DArray
    stamp: int
    """The time by the clock of its source, µs."""
    instant: int
    """The same time where that clock was never set, see ``Timeline``."""
    arrived: float
    """The time of its arrival on the loop's clock, seconds."""


async def fresh_frames(
    detections: In[Detection2DArray], timeout_s: float, timeline: Timeline | None = None
) -> AsyncGenerator[DetectionFrame | None, None]:
    """Yield each frame from now on that is newer than those before, and None after every ``timeout_s`` without one.

    A camera that is frozen may repeat its last picture: such frames count for nothing, nor do those with impossible
    stamps. ``timeline`` is of what came before. Does not end by itself.
    """
    timeline = timeline or Timeline("detections")
    reader = detections.reader()
    deadline = clock.monotonic() + timeout_s
    try:
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await reader.next()
            except TimeoutError:
                deadline = clock.monotonic() + timeout_s
                yield None
                continue
            stamp, arrived = utime_of(message.header), clock.monotonic()
            instant = timeline.take(stamp, arrived)
            if instant is not None:
                deadline = arrived + timeout_s
                yield DetectionFrame(message, stamp, instant, arrived)
    finally:
        detections.release(reader)
