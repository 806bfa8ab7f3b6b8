"""A response that sends a broadcast's events as server-sent events, for as long as the client reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

import anyio
from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.journal.broadcast_reader import BroadcastReader
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.serving.events.event_frame import event_frame
from dimos_streams.serving.events.event_response import STREAM_HEADERS
from dimos_streams.serving.server.at_once import body_of
from dimos_streams.serving.server.connection_ends import ConnectionEnds

_START = b"retry: 500\nid: %d\n\n"
_PING = b": ping\n\n"
_PING_AT = b": ping\nid: %d\n\n"
_CHECKS = 4
"""Number of looks at the time in the shortest of a stream's periods: how late a ping or a cut may come."""
_GONE_S = 1.0

_log = LimitedLog(logging.getLogger(__name__))


class EventStream(EventSourceResponse):
    """An ASGI response. Between events it sends a comment every ``ping_s`` seconds, so that both sides notice
    when the other is gone. A client that takes nothing for as long as ``connection_ends`` allows is cut off and
    counted. Both may be a quarter late.

    While the client keeps up, events are written as soon as they are published, and no task is woken for them. If it
    leaves something waiting, the task waits for it.

    A client resumes at the newest id, and it has one before its first event: the stream begins with the offset from
    which it is read, and a ping brings the one up to which others' events have passed. Such an id is no event.
    """

    def __init__(
        self,
        broadcast: Broadcast,
        *,
        after: int | None,
        caller: str | None,
        call_id: str | None,
        robot: str | None = None,
        ping_s: float,
        connection_ends: ConnectionEnds,
    ) -> None:
        # A ping is a chunk when there is no other.
        super().__init__(self._chunks(), ping=0, sep="\n", headers=STREAM_HEADERS)
        self._broadcast = broadcast
        self._after = after
        self._caller, self._call_id, self._robot = caller, call_id, robot
        self._ping_s, self._connection_ends = ping_s, connection_ends

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._body = body_of(scope)
        self._reader = self._broadcast.reader(
            after=self._after, caller=self._caller, call_id=self._call_id, robot=self._robot, take=self._take
        )
        with anyio.CancelScope() as stream:
            send_timeout_s = self._connection_ends.send_timeout_s
            self._pace = _Pace(self._reader, stream.cancel, ping_s=self._ping_s, send_timeout_s=send_timeout_s)
            leaving = asyncio.get_running_loop().create_task(
                self._listen_for_disconnect(receive), name="event stream"
            )
            leaving.add_done_callback(lambda _: stream.cancel())
            try:
                # The library has a group of three tasks for this, which takes as much memory as all the rest.
                await self._stream_response(send)
            finally:
                leaving.cancel()
                self._pace.stop()
                self._reader.close()
        if self._pace.is_stalled:
            self._broadcast.cut += 1
            _log.warning("client %s reads nothing; it was cut off", scope.get("client"))
            self._connection_ends.cut_off(scope)
            # A server that does not know yet that the connection is gone would complain of half a response.
            with anyio.move_on_after(_GONE_S):
                await self._listen_for_disconnect(receive)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        """A chunk for each page, a ping when there is none for a while, up to the reader's end."""
        self._sent_offset = self._reader.offset
        chunk = _START % self._sent_offset
        while not self._reader.closed:
            self._pace.begin()
            yield chunk
            # Sending nothing waits until most of that is taken. A client that does not read costs what it has not
            # read, and not the next page too; one that waits keeps no page alive.
            del chunk
            yield b""
            self._pace.end()
            chunk = self._chunk(await self._reader.page())

    def _take(self, page: list[EncodedEntry]) -> bool:
        if self._body is None or not self._body.is_free:
            return False
        self._body.write(b"".join(map(frame, page)))
        self._sent_offset = page[-1].offset
        self._pace.end()
        if not self._body.is_free:
            self._reader.nudge()  # the task waits for the client, within its time
        return True

    def _chunk(self, page: list[EncodedEntry]) -> bytes:
        before, self._sent_offset = self._sent_offset, page[-1].offset if page else self._reader.offset
        if page:
            return b"".join(map(frame, page))
        return _PING if self._sent_offset == before else _PING_AT % self._sent_offset

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        """Send a message. The pace has one timer for all chunks, where the library has a cancel scope for each."""
        await send(message)


class _Pace:
    """The two periods of a stream. Events pass without a timer of their own, which would cost more than they do."""

    def __init__(
        self, reader: BroadcastReader, on_stalled: Callable[[], None], *, ping_s: float, send_timeout_s: float
    ) -> None:
        self._reader, self._on_stalled = reader, on_stalled
        self._ping_s, self._send_timeout_s = ping_s, send_timeout_s
        self._loop = asyncio.get_running_loop()
        self.is_stalled = False
        """True once the client has taken nothing for too long."""
        self.begin()
        self._timer = self._loop.call_later(0.0, self._check)

    def begin(self) -> None:
        """Note that a chunk is on its way to the client."""
        self._sending, self._since = True, clock.monotonic()

    def end(self) -> None:
        """Note that the client, or the kernel for it, has taken the chunk."""
        self._sending, self._since = False, clock.monotonic()

    def stop(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _check(self) -> None:
        passed = clock.monotonic() - self._since
        if self._sending and passed >= self._send_timeout_s:
            self.is_stalled = True
            self._on_stalled()
            return
        if not self._sending and passed >= self._ping_s:
            self._reader.nudge()
        self._timer = self._loop.call_later(min(self._ping_s, self._send_timeout_s) / _CHECKS, self._check)


def frame(entry: EncodedEntry) -> bytes:
    """An entry on the wire."""
    return event_frame(b"tool_stream", entry.body, entry.offset)
