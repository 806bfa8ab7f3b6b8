"""A response that sends a hub's events as server-sent events, for as long as the client reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dimos_streams.bridge.entry import Entry
from dimos_streams.bridge.hub import Hub, Reader
from dimos_streams.limited_log import LimitedLog

_RETRY_MS = 500
_CHECKS = 4
"""Looks at the time in the shortest of a stream's periods: how late a ping or a cut may come."""

_log = LimitedLog(logging.getLogger(__name__))


class EventStream(Response):
    """An ASGI response. Between events it sends a comment every ``ping_s`` seconds, so that both sides notice
    when the other is gone. A client that takes nothing for ``send_timeout_s`` is cut off and counted. Both
    may be a quarter late.

    ``abort`` ends a client's connection without waiting for it.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        after: int | None,
        caller: str | None,
        call_id: str | None,
        ping_s: float,
        send_timeout_s: float,
        abort: Callable[[object], None],
    ) -> None:
        self.status_code, self.media_type, self.background = 200, "text/event-stream", None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._hub = hub
        self._after, self._caller, self._call_id = after, caller, call_id
        self._ping_s = ping_s
        self._send_timeout_s = send_timeout_s
        self._abort = abort

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader = self._hub.reader(after=self._after, caller=self._caller, call_id=self._call_id)
        loop = asyncio.get_running_loop()
        watcher = loop.create_task(_close_on_disconnect(receive, reader))
        try:
            async with asyncio.timeout(None) as limit:
                pace = _Pace(loop, reader, limit, ping_s=self._ping_s, send_timeout_s=self._send_timeout_s)
                try:
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    await self._send_pages(send, reader, pace)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                finally:
                    pace.stop()
        except TimeoutError:
            self._hub.cut += 1
            _log.warning("client %s reads nothing; it was cut off", scope.get("client"))
            self._abort(scope.get("client"))
            # A server that does not know yet that the connection is gone would complain of half a response.
            await asyncio.wait([watcher], timeout=1.0)
        finally:
            watcher.cancel()
            reader.close()

    async def _send_pages(self, send: Send, reader: Reader, pace: _Pace) -> None:
        """A chunk for each page, a ping when there is none for a while, up to the reader's end."""
        chunk = f"retry: {_RETRY_MS}\n\n".encode()
        while not reader.closed:
            pace.begin()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            # Sending nothing waits until most of that is taken. A client that does not read costs what it has not
            # read, and not the next page too.
            del chunk
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            pace.end()
            chunk = b"".join(map(frame, await reader.page())) or b": ping\n\n"


class _Pace:
    """The two periods of a stream. Events pass without a timer of their own, which would cost more than they do."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reader: Reader,
        limit: asyncio.Timeout,
        *,
        ping_s: float,
        send_timeout_s: float,
    ) -> None:
        self._loop, self._reader, self._limit = loop, reader, limit
        self._ping_s, self._send_timeout_s = ping_s, send_timeout_s
        self._sending = False
        self._since = loop.time()
        self._timer = loop.call_later(0.0, self._check)

    def begin(self) -> None:
        """A chunk is on its way to the client."""
        self._sending, self._since = True, self._loop.time()

    def end(self) -> None:
        """The client, or the kernel for it, has taken the chunk."""
        self._sending, self._since = False, self._loop.time()

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _check(self) -> None:
        passed = self._loop.time() - self._since
        if self._sending and passed >= self._send_timeout_s:
            self._limit.reschedule(self._loop.time())
            return
        if not self._sending and passed >= self._ping_s:
            self._reader.nudge()
        self._timer = self._loop.call_later(min(self._ping_s, self._send_timeout_s) / _CHECKS, self._check)


def frame(entry: Entry) -> bytes:
    """An entry on the wire. Its JSON has no line ends."""
    return b"event: tool_stream\nid: %d\ndata: %b\n\n" % (entry.place, entry.body)


async def _close_on_disconnect(receive: Receive, reader: Reader) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.close()
