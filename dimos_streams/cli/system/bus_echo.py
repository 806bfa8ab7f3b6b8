"""An echo over a bus: messages that are sent to see whether they arrive."""

from __future__ import annotations

import asyncio
import os

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.recording.recorder import ECHOES

LARGEST = 60_000
"""Size of each message, in bytes: as large as any of a stock blueprint."""
MANY = 50
_BOUND_S = 2.0


async def echo(sender: Bus, receiver: Bus) -> tuple[float, int]:
    """Return the delay of the first message in seconds, and how many of all arrived."""
    channel = f"{ECHOES}{os.getpid()}#std_msgs.String"
    received = 0
    first = float("nan")
    changed = asyncio.Event()

    def on_message(channel: str, data: bytes) -> None:
        nonlocal received, first
        received += 1
        first = clock.monotonic() - began if received == 1 else first
        changed.set()

    receiver.subscribe(channel, on_message)
    began = clock.monotonic()
    try:
        async with asyncio.timeout(_BOUND_S):
            while not sender.has_subscribers(channel):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            began = clock.monotonic()
            for number in range(1, MANY + 1):
                sender.publish(channel, bytes(LARGEST))
                while received < number:
                    changed.clear()
                    await changed.wait()
    except TimeoutError:
        pass  # what is missing is the finding
    return first, received
