"""uvicorn's HTTP protocol, with bounds on what connections take of the loop and of memory, each and all together.

h11 makes an event of each chunk, 6 bytes of a body perhaps, and uvicorn handles all that a read brought at once: a
quarter of a megabyte of one-byte chunks holds the loop for 0.3 s, whoever sent it and whether it is answered or not.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from dimos_streams import clock
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind
from dimos_streams.serving.problems import problem
from dimos_streams.serving.server import at_once
from dimos_streams.serving.server.held_flow import HeldFlow
from dimos_streams.serving.server.metered_h11 import MAX_PIECES, MeteredConnection
from dimos_streams.serving.server.request_order import leave
from dimos_streams.serving.server.turns import Turns

MAX_CONNECTIONS = 768
"""Maximum number of connections at a time; below the 1024 files that a process may have open by default."""
MAX_HEAD = 16 * 1024
"""Maximum bytes of a request's line and headers. Up to twice as many may pass, if they come at once."""
MAX_UNSENT = 8 * 1024 * 1024
"""Maximum bytes that wait for all clients together to take them."""
MAX_UNPARSED = 8 * 1024 * 1024
"""Maximum bytes that have come from all clients together and wait to be parsed; a read may bring 256 kB of one."""
_UNSENT = 0
"""Bytes that wait for one client before its response is held up; the last write comes on top. 0: anything buffered
here means that the client lags, and all of it counts; the kernel's buffer fills first."""
_EVENTS = 16
"""Number of events that are parsed for one connection at a time."""


def last_word(kind: ProblemKind, detail: str) -> bytes:
    """A whole response, after which the connection is closed."""
    response = problem(kind, detail)
    response.headers["Connection"] = "close"
    lines = [b"HTTP/1.1 %d %b" % (kind.status, HTTPStatus(kind.status).phrase.encode())]
    lines += [b"%b: %b" % header for header in response.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(response.body)])


_TOO_MANY = last_word(
    problem_kinds.TOO_LARGE, f"The body comes in more than {MAX_PIECES} pieces; send it in larger ones"
)
_BAD_HTTP = last_word(
    problem_kinds.BAD_HTTP,
    "this is not a request in HTTP/1.1, or it has both Content-Length and Transfer-Encoding",
)
_TOO_LONG = last_word(
    problem_kinds.BAD_HTTP, f"its line and headers, or the head of a chunk, have more than {MAX_HEAD} bytes"
)


def _may_open_socket(method: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a request has the form of one for a WebSocket: a GET without a body."""
    has_body = any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0")) for name, value in headers
    )
    return method == "GET" and not has_body


class Sender(Protocol):
    """A connection on which something has come that waits to be parsed."""

    def drop(self) -> None:
        """End the connection, and forget what has come on it."""


class Connections:
    """The state that the connections of one server share: turns at parsing, and the bytes that wait for clients."""

    def __init__(self, most: int) -> None:
        self.turns = Turns()
        self._most = most
        self._full = last_word(problem_kinds.TOO_MANY_CONNECTIONS, f"{most} connections are open already; try again")
        self._backed_up: dict[BoundedProtocol, None] = {}
        self._unparsed: dict[Sender, int] = {}
        self._unparsed_bytes = 0
        self.cut = 0
        """Number of connections that were ended for what they cost."""

    def make_room(self, newest: BoundedProtocol) -> None:
        """End a connection if there are too many: the one that has been idle for longest, or else the newest."""
        if len(newest.connections) <= self._most:
            return
        self.cut += 1
        idle = [each for each in newest.connections if isinstance(each, BoundedProtocol) and each.is_idle]
        victim = min(idle, key=lambda each: each.idle_from)
        if victim is newest:
            newest.end_with(self._full)
        else:
            victim.transport.abort()

    def back_up(self, connection: BoundedProtocol) -> None:
        """Note that a client does not keep up. If such clients leave too much together, those that have not kept up
        for longest are cut off."""
        self._backed_up[connection] = None
        sizes = {each: each.transport.get_write_buffer_size() for each in self._backed_up}
        total = sum(sizes.values())
        for each, size in sizes.items():
            if total <= MAX_UNSENT:
                break
            total -= size
            self.cut += 1
            self.forget(each)
            each.transport.abort()

    def forget(self, connection: BoundedProtocol) -> None:
        """Note that a client has taken what there was, or is gone."""
        self._backed_up.pop(connection, None)

    def leave_unparsed(self, connection: Sender, size: int) -> None:
        """Note how many bytes of a client wait to be parsed. If all sent too much, cut off the one with the most."""
        self._unparsed_bytes += size - self._unparsed.pop(connection, 0)
        if size:
            self._unparsed[connection] = size
        if self._unparsed_bytes > MAX_UNPARSED:
            victim = max(self._unparsed, key=self._unparsed.__getitem__)
            self._unparsed_bytes -= self._unparsed.pop(victim)
            self.cut += 1
            victim.drop()


class BoundedProtocol(H11Protocol):
    """One connection."""

    conn: MeteredConnection
    flow: HeldFlow

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._served, self.app = self.app, self._serve
        self._shared = connections
        self.conn = MeteredConnection(h11.SERVER, MAX_HEAD)
        self._unread = bytearray()
        self.idle_from = clock.monotonic()
        """Time at which it was made, its last response was complete, or its next request began to arrive."""

    @property
    def is_idle(self) -> bool:
        """True if no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_kept_alive(self) -> bool:
        """True if it was answered, and nothing of another request has come since."""
        begun = self.conn.their_state is not h11.IDLE or self._unread or self.conn.trailing_data[0]
        return self.cycle is not None and self.cycle.response_complete and not begun

    def idle_s(self) -> float:
        """Time, in seconds, for which it has been idle, whatever was sent on it in the meantime; 0 if it is not."""
        return clock.monotonic() - self.idle_from if self.is_idle else 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNSENT)
        self.flow = HeldFlow(transport)
        self._shared.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.forget(self)
        self._unread.clear()
        self._shared.leave_unparsed(self, 0)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self.scope is not None:
            leave(self.scope)  # type: ignore[arg-type]
        # Breaks the reference cycle: else this connection would stay until the garbage collector runs, which would
        # then look at tens of thousands of objects in a single turn of the loop.
        self.app = self._served

    def data_received(self, data: bytes) -> None:
        if self.is_kept_alive:
            self.idle_from = clock.monotonic()
        self._unset_keepalive_if_required()
        self._unread += data
        if self.flow.held:
            return
        if self._shared.turns.admit(self.loop):
            self.handle_events()
        else:
            self._wait()

    def handle_events(self) -> None:
        """Parse what has come, as far as one turn of the loop has room for; the rest when its turn comes."""
        self.conn.allowance = _EVENTS
        super().handle_events()
        while self._unread and self._wants_more():
            self.conn.receive_data(bytes(self._unread[:MAX_HEAD]))
            del self._unread[:MAX_HEAD]
            super().handle_events()
        if self.conn.allowance == 0 and not self.flow.held:
            self._wait()
        else:
            self._shared.leave_unparsed(self, len(self._unread))

    def go_on(self) -> None:
        """Parse more now that it is this connection's turn; ``Turns`` calls it."""
        self.flow.let_go()
        if self._is_own():
            self.handle_events()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._shared.back_up(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._shared.forget(self)

    def _should_upgrade(self) -> bool:
        # Anything else is answered as HTTP: uvicorn would wait for ever for a request for a WebSocket without a body,
        # and warn of each offer of HTTP/2, as Java's client makes it with every connection.
        wanted = self._get_upgrade() == b"websocket" and _may_open_socket(self.scope["method"], self.headers)
        return wanted and super()._should_upgrade()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._shared.forget(self)
        super().handle_websocket_upgrade(event)
        # Some clients send frames without waiting for the answer; uvicorn would lose what came with the request.
        early = self.conn.trailing_data[0] + bytes(self._unread)
        self._unread.clear()
        if early:
            web_socket = self.transport.get_protocol()
            assert isinstance(web_socket, asyncio.Protocol)
            web_socket.data_received(early)

    def send_400_response(self, msg: str) -> None:
        self._unread.clear()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            if self.conn.too_many_pieces:
                self.end_with(_TOO_MANY)
            else:
                self.end_with(_TOO_LONG if self.conn.is_too_long else _BAD_HTTP)
        else:  # it was answered, and what it still sends is no HTTP
            self.transport.close()

    def end_with(self, response: bytes) -> None:
        """Send a last response and close the connection."""
        self.transport.write(response)
        self.transport.close()

    def on_response_complete(self) -> None:
        self.idle_from = clock.monotonic()
        super().on_response_complete()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.cycle is not None
        if scope["http_version"] == "1.1":  # before, a body is not in chunks
            scope["extensions"] = {at_once.EXTENSION: _Body(self, self.cycle)}
        try:
            await self._served(scope, receive, send)
        finally:
            scope.pop("extensions", None)  # they know the request, which knows its scope

    def drop(self) -> None:
        """End the connection, and forget what has come on it."""
        self._unread.clear()
        self.transport.abort()

    def _wait(self) -> None:
        self._shared.leave_unparsed(self, len(self._unread))
        self.flow.hold()
        self._shared.turns.wait(self, self.loop, is_new=self.conn.their_state is h11.IDLE)

    def _wants_more(self) -> bool:
        return self.conn.allowance > 0 and self.conn.needs_data and self._is_own()

    def _is_own(self) -> bool:
        """Return whether the connection is open, and still HTTP."""
        return not self.transport.is_closing() and self.transport.get_protocol() is self


class _Body:
    """See ``Body``."""

    def __init__(self, connection: BoundedProtocol, cycle: RequestResponseCycle) -> None:
        self._connection, self._cycle = connection, cycle

    @property
    def is_free(self) -> bool:
        cycle, connection = self._cycle, self._connection
        goes_on = cycle.response_started and not (cycle.response_complete or cycle.disconnected)
        return goes_on and not (connection.flow.write_paused or connection.transport.is_closing())

    def write(self, piece: bytes) -> None:
        # As h11 writes it, whose state no piece changes.
        self._connection.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
