"""The queues for viewers, bounded in bytes: the SDK counts messages, and 128 raw pictures are 160 MB for each
viewer."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from dimos_streams.foxglove.door.websocket_frames import FrameHead, read_frame_head

MAX_BYTES = 12 * 1024 * 1024
"""Maximum of bytes that wait for one viewer: the largest message of a bus, as JSON."""
MAX_BYTES_IN_ALL = 96 * 1024 * 1024
"""Maximum of bytes that wait for all viewers together, beyond one message for each."""
STALLED_S = 30.0
"""Seconds after which a viewer who takes nothing of what waits is cut off."""
PAUSED_S = 1.0
"""Seconds after which no more messages are made for a viewer who takes nothing and loses some, until all that waits
is taken."""
_CHUNK = 64 * 1024
_TAKEN = b"HTTP/1.1 101 "
"""The beginning of the answer to a request for a WebSocket that is granted."""
_OVERHEAD = 128
"""Bytes that a frame takes besides its own, so that not too many small ones wait either."""


class NoHandshakeError(ConnectionError):
    """The SDK has refused a request, which it does without a word, or has left without an answer."""


class MessageSource(Protocol):
    """The protocol of what makes messages for a viewer."""

    def pause(self) -> None:
        """Make no messages any more."""

    def resume(self) -> None:
        """Make messages again."""


@dataclass(frozen=True, slots=True)
class _Frame:
    number: int
    data: bytes
    cost: int


class Outboxes:
    """The queues for all viewers: where too much waits, the viewer with the most loses the oldest messages."""

    def __init__(self) -> None:
        self._outboxes: set[Outbox] = set()

    def open(self, source: MessageSource) -> Outbox:
        """Open an outbox for a viewer who has come, and for whom ``source`` makes messages."""
        outbox = Outbox(self, source)
        self._outboxes.add(outbox)
        return outbox

    def close(self, outbox: Outbox) -> None:
        """Forget an outbox, and what waits in it."""
        self._outboxes.discard(outbox)

    @property
    def held(self) -> int:
        """The bytes that wait for all viewers."""
        return sum(outbox.held for outbox in self._outboxes)

    def make_room(self, cost: int) -> bool:
        """Drop the oldest messages until ``cost`` more bytes may wait; return False if there is no room even then."""
        while self.held + cost > MAX_BYTES_IN_ALL:
            if not max(self._outboxes, key=lambda outbox: outbox.droppable).drop_oldest():
                return False
        return True


class Outbox:
    """The queue for one viewer: the newest messages of channels, and everything else."""

    def __init__(self, all_of_them: Outboxes, source: MessageSource) -> None:
        self._all = all_of_them
        self._source = source
        self._waits_since: float | None = None
        """The time since which the viewer has taken nothing, or None while everything is taken."""
        self._messages: deque[_Frame] = deque()
        self._others: deque[_Frame] = deque()
        self._numbers = itertools.count()
        self._changed = asyncio.Event()
        self.held = 0
        """The bytes that wait, that are being read, and that are being written."""
        self.droppable = 0
        """The bytes of messages that wait."""

    async def fill(self, reader: asyncio.StreamReader) -> None:
        """Take in all that the SDK has for this viewer, until all of it is delivered. Raises ``ConnectionError``
        where too much waits that must not be missing, ``NoHandshakeError`` where the SDK does not take the request,
        ``asyncio.IncompleteReadError`` for a frame without an end."""
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise error if error.partial else NoHandshakeError from error
        if not answer.startswith(_TAKEN):
            raise NoHandshakeError
        self._keep_other(answer)
        while (head := await read_frame_head(reader)) is not None:
            if head.is_message:
                await self._take_message(head, reader)
            else:
                self._make_room_for_other(head.size)
                self._keep_other(head.read + await reader.readexactly(head.rest))
        while self.held:
            await self._change()

    async def deliver(self, writer: asyncio.StreamWriter) -> None:
        """Write what there is, without an end. Raises ``TimeoutError`` for a viewer who takes nothing for long."""
        loop = asyncio.get_running_loop()
        while True:
            while not (self._messages or self._others):
                self._source.resume()
                await self._change()
            frame = self._next()
            rest = memoryview(frame.data)
            while rest:
                writer.write(rest[:_CHUNK])
                rest = rest[_CHUNK:]
                self._waits_since = loop.time()
                async with asyncio.timeout(STALLED_S):
                    await writer.drain()
                self._waits_since = None
            self._release(frame.cost)

    def drop_oldest(self) -> bool:
        """Drop the message that waits longest, and return False if none does."""
        if not self._messages:
            return False
        self._lose()
        cost = self._messages.popleft().cost
        self.droppable -= cost
        self._release(cost)
        return True

    def _lose(self) -> None:
        """Note that a message is not delivered."""
        since = self._waits_since
        if since is not None and asyncio.get_running_loop().time() - since > PAUSED_S:
            self._source.pause()

    async def _take_message(self, head: FrameHead, reader: asyncio.StreamReader) -> None:
        cost = head.size + _OVERHEAD
        if not self._has_room(cost):
            self._lose()
            await _skip(reader, head.rest)
            return
        self.held += cost
        data = head.read + await reader.readexactly(head.rest)
        self._messages.append(_Frame(next(self._numbers), data, cost))
        self.droppable += cost
        self._changed.set()

    def _has_room(self, cost: int) -> bool:
        """Return whether a message may wait, too. A viewer who has nothing gets one, whatever waits for others."""
        while self.held + cost > MAX_BYTES:
            if not self.drop_oldest():
                return False
        return self._all.make_room(cost) or not self.held

    def _make_room_for_other(self, size: int) -> None:
        while self.held + size + _OVERHEAD > MAX_BYTES:
            if not self.drop_oldest():
                raise ConnectionError(f"{self.held} bytes wait for a viewer, none of which may be missing")

    def _keep_other(self, data: bytes) -> None:
        cost = len(data) + _OVERHEAD
        self.held += cost
        self._others.append(_Frame(next(self._numbers), data, cost))
        self._changed.set()

    def _next(self) -> _Frame:
        """The frame that came first."""
        if self._others and not (self._messages and self._messages[0].number < self._others[0].number):
            return self._others.popleft()
        frame = self._messages.popleft()
        self.droppable -= frame.cost
        return frame

    def _release(self, cost: int) -> None:
        self.held -= cost
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def _skip(reader: asyncio.StreamReader, size: int) -> None:
    while size:
        data = await reader.read(min(size, _CHUNK))
        if not data:
            raise ConnectionError("the SDK's server ended within a frame")
        size -= len(data)
