"""uvicorn's WebSocket protocol, with bounds on what clients take of the loop, on a server that stops."""

from __future__ import annotations

import logging
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.server.frames import MeteredFrames
from dimos_streams.serving.server.protocol import Connections, last_word

_PIECE = 1024
"""Bytes that are taken apart before the frames in them are counted: 170 at most."""
_FRAMES = 64
"""Maximum number of frames that are taken apart in one turn; those of the last piece come on top."""
_REQUEST_END = b"\r\n\r\n"
_GOODBYE_S = 1.0
"""Time, in seconds, within which a client takes the reason why it is cut off."""

_log = LimitedLog(logging.getLogger(__name__))


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """One connection.

    What comes is taken apart when it has its turn among all that comes on connections of the server, and when the
    application has accepted the connection and taken the messages before. A client that sends too many frames is cut
    off.
    """

    conn: MeteredFrames

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.conn = MeteredFrames(max_size=self.config.ws_max_size, logger=self.logger)
        self._shared = connections
        self._unread = bytearray()
        self._waits = False
        """True while it waits for its turn."""
        self._pong = b""
        """The newest pong that is owed to a client that takes nothing."""

    def data_received(self, data: bytes) -> None:
        if self.conn.parser_exc is not None:
            self.transport.pause_reading()
            return
        self._unread += data
        if self._waits or self._is_behind:
            self._hold()
        elif self._shared.turns.admit(self.loop):
            self._take_apart()
        else:
            self._wait()

    def go_on(self) -> None:
        """Read on now that it is this connection's turn; ``Turns`` calls it."""
        self._waits = False
        if not self._is_behind:
            self.transport.resume_reading()
            self._take_apart()

    def drop(self) -> None:
        """End the connection, and forget what has come on it."""
        self._unread.clear()
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.clear()
        self._shared.leave_unparsed(self, 0)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, b""
        if pong and not self.transport.is_closing():
            self.transport.write(pong)

    def handle_ping(self) -> None:
        """Answer a ping. A client that does not take what it is sent gets an answer to its last ping only."""
        if self.writable.is_set() or self.conn.state is not State.OPEN:
            super().handle_ping()
        elif pongs := self.conn.data_to_send():
            self._pong = pongs[-1]

    def handle_parser_exception(self) -> None:
        """Tell the client why, and end the connection a moment later: the kernel forgets what was sent but not taken
        yet where a connection is closed on which there is more to read."""
        goodbye = self.conn.close_sent
        assert goodbye is not None
        _log.warning("WebSocket client %s was cut off: %s", self.client, self.conn.parser_exc)
        self.transport.pause_reading()
        self._unread.clear()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": goodbye.code, "reason": goodbye.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.close_timer = self.loop.call_later(_GOODBYE_S, self.transport.abort)

    def shutdown(self) -> None:
        """End the connection because the server stops, unless it is ending already.

        uvicorn says goodbye to a client then, also to one that has done so itself and has only to take what was sent
        before. The second goodbye raises ``InvalidState``, and no other connection of the server is ended.
        """
        if not self.transport.is_closing():
            super().shutdown()

    async def receive(self) -> Any:
        message = await super().receive()
        self._look_at_unread()
        return message

    async def send(self, message: Any) -> None:
        if self.close_sent if self.handshake_complete else self.transport.is_closing():
            raise ClientDisconnected  # else uvicorn calls it a mistake of the application, which can't know of it yet
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # it has ended in a refusal, for which uvicorn logs an error otherwise
        self._look_at_unread()

    def _take_apart(self) -> None:
        until = self.conn.taken + _FRAMES
        while self._unread and self.conn.taken < until and not self._is_behind and not self.transport.is_closing():
            size = _PIECE if self.handshake_initiated else self._request_size()
            piece = bytes(self._unread[:size])
            del self._unread[:size]
            super().data_received(piece)
            if self.conn.handshake_exc is not None and not self.transport.is_closing():
                self._refuse_request(self.conn.handshake_exc)
        self._look_at_unread()

    @property
    def _is_behind(self) -> bool:
        """True if the application has yet to accept the connection, or to take a message."""
        return self.read_paused or (self.handshake_initiated and not self.handshake_complete)

    def _request_size(self) -> int:
        """Return the bytes of the request for the WebSocket, which comes whole: frames behind it, if any, wait until
        it is answered."""
        return self._unread.find(_REQUEST_END) + len(_REQUEST_END)

    def _refuse_request(self, error: Exception) -> None:
        """Answer what is HTTP and no request for a WebSocket, to which uvicorn would say nothing."""
        self._unread.clear()
        self.transport.write(last_word(problem_kinds.BAD_HTTP, f"no WebSocket is opened by this request: {error}"))
        self.transport.close()

    def _look_at_unread(self) -> None:
        """Wait for a turn to read what is unread, if there is something that could be read."""
        if self._unread and not self._is_behind and not self.transport.is_closing():
            self._wait()
        else:
            self._shared.leave_unparsed(self, len(self._unread))

    def _wait(self) -> None:
        self._hold()
        if not self._waits:
            self._waits = True
            self._shared.turns.wait(self, self.loop, is_new=False)

    def _hold(self) -> None:
        self._shared.leave_unparsed(self, len(self._unread))
        self.transport.pause_reading()
