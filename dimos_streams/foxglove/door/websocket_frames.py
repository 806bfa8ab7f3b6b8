"""Frames of a WebSocket: how long each one is, and what it is for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

_END, _TEXT, _BINARY, _CONTROL = 0x80, 0x1, 0x2, 0x8
_MASKED = 0x80
_MESSAGE = 1
"""The first byte of what Foxglove's protocol sends of a channel."""


@dataclass(frozen=True, slots=True)
class FrameHead:
    """The beginning of a frame."""

    read: bytes
    """The bytes of it that were read."""
    rest: int
    """The bytes of it that follow."""
    is_message: bool
    """True if it is a message of a channel, which may be left out; the protocol needs all else."""

    @property
    def size(self) -> int:
        """The bytes of the whole frame."""
        return len(self.read) + self.rest


@dataclass(frozen=True, slots=True)
class ClientFrame:
    """The beginning of a frame that a client sends."""

    head: bytes
    """The bytes before the payload."""
    length: int
    """The size of the payload, in bytes."""
    mask: bytes
    """The mask with which the payload is written; empty where a client, which must not, uses none."""

    @property
    def is_last(self) -> bool:
        """True if a message ends with it."""
        return bool(self.head[0] & _END)

    @property
    def is_control(self) -> bool:
        """True if it may stand in the midst of a message."""
        return bool(self.head[0] & _CONTROL)

    @property
    def is_text(self) -> bool:
        """True if a text begins with it."""
        return self.head[0] & 0xF == _TEXT

    @property
    def is_whole_text(self) -> bool:
        """True if it is a text, from beginning to end."""
        return self.head[0] == _END | _TEXT

    @property
    def is_whole_binary(self) -> bool:
        """True if it is no text but bytes, from beginning to end."""
        return self.head[0] == _END | _BINARY

    def unmasked(self, payload: bytes) -> bytes:
        """Return the payload without its mask."""
        key = (self.mask * (len(payload) // 4 + 1))[: len(payload)]
        return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(len(payload))


def text_frame(payload: bytes) -> bytes:
    """A text as a client sends it, under a mask that changes nothing."""
    return _client_frame(_TEXT, payload)


def binary_frame(payload: bytes) -> bytes:
    """Bytes as a client sends them in a binary frame, under a mask that changes nothing."""
    return _client_frame(_BINARY, payload)


def _client_frame(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    extended = b"" if size < 126 else size.to_bytes(2) if size < 2**16 else size.to_bytes(8)
    length = size if size < 126 else 126 if size < 2**16 else 127
    return bytes([_END | kind, _MASKED | length]) + extended + bytes(4) + payload


async def read_client_frame(reader: asyncio.StreamReader) -> ClientFrame | None:
    """The beginning of a client's next frame, None behind the last one. Raises ``asyncio.IncompleteReadError`` where
    the stream ends within it."""
    begun = await _begin(reader)
    if begun is None:
        return None
    head, length = begun
    mask = await reader.readexactly(4) if head[1] & _MASKED else b""
    return ClientFrame(head + mask, length, mask)


async def read_frame_head(reader: asyncio.StreamReader) -> FrameHead | None:
    """The beginning of a server's next frame, None behind the last one. Raises ``asyncio.IncompleteReadError`` where
    the stream ends within it."""
    begun = await _begin(reader)
    if begun is None:
        return None
    read, length = begun
    if not length or read[0] != _END | _BINARY:
        return FrameHead(read, length, is_message=False)
    kind = await reader.readexactly(1)
    return FrameHead(read + kind, length - 1, is_message=kind[0] == _MESSAGE)


async def _begin(reader: asyncio.StreamReader) -> tuple[bytes, int] | None:
    """Return the bytes that say how long a frame is, and its length; None behind the last frame."""
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
    return read, length
