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

_log = LimitedLog(logging.getLogger(__name__))


class EventStream(Response):
    """An ASGI response. Between events it sends a comment every ``ping_s`` seconds, so that both sides notice
    when the other is gone. A client that takes nothing for ``send_timeout_s`` is cut off and counted.

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
        watcher = asyncio.get_running_loop().create_task(_close_on_disconnect(receive, reader))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, f"retry: {_RETRY_MS}\n\n".encode())
            while not reader.closed:
                await self._send(send, await self._next(reader))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._hub.cut += 1
            _log.warning("client %s reads nothing; it was cut off", scope.get("client"))
            self._abort(scope.get("client"))
            # A server that does not know yet that the connection is gone would complain of half a response.
            await asyncio.wait([watcher], timeout=1.0)
        finally:
            watcher.cancel()
            reader.close()

    async def _next(self, reader: Reader) -> bytes:
        """The next page as a chunk of the stream, a ping if there is none for a while, nothing at the end."""
        try:
            async with asyncio.timeout(self._ping_s):
                return b"".join(map(frame, await reader.page()))
        except TimeoutError:
            return b": ping\n\n"

    async def _send(self, send: Send, chunk: bytes) -> None:
        async with asyncio.timeout(self._send_timeout_s):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


def frame(entry: Entry) -> bytes:
    """An entry on the wire. Its JSON has no line ends."""
    return b"event: tool_stream\nid: %d\ndata: %b\n\n" % (entry.place, entry.body)


async def _close_on_disconnect(receive: Receive, reader: Reader) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.close()
