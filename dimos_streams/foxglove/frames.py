"""Frames of a WebSocket as its server sends them: how long each one is, and whether it is a message of a channel."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

_END, _BINARY = 0x80, 0x2
_MESSAGE = 1
"""The first byte of what Foxglove's protocol sends of a channel."""


@dataclass(frozen=True, slots=True)
class FrameHead:
    """The beginning of a frame."""

    read: bytes
    """What was read of it."""
    rest: int
    """The bytes of it that follow."""
    is_message: bool
    """Whether it is a message of a channel, which may be missing. All else the protocol needs."""

    @property
    def size(self) -> int:
        """The bytes of the whole frame."""
        return len(self.read) + self.rest


async def read_frame_head(reader: asyncio.StreamReader) -> FrameHead | None:
    """The beginning of the next frame, None behind the last one. Raises ``asyncio.IncompleteReadError`` where the
    stream ends within it."""
    try:
        read = await reader.readexactly(2)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise
    length = read[1] & 0x7F
    if extension := {126: 2, 127: 8}.get(length, 0):
        more = await reader.readexactly(extension)
        read, length = read + more, int.from_bytes(more)
    if not length or read[0] != _END | _BINARY:
        return FrameHead(read, length, is_message=False)
    kind = await reader.readexactly(1)
    return FrameHead(read + kind, length - 1, is_message=kind[0] == _MESSAGE)
