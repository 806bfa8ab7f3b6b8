"""The door before the SDK's server, which itself lets everybody in: only viewers that the rules admit get past it.

Behind the door the SDK serves on an address of this machine that only this process knows. Without a token a page in
somebody's browser could otherwise see the camera and give orders: browsers let pages of any origin open WebSockets to
this machine. What passes is forwarded as it is, so the subprotocol is between the viewer and the SDK; for a viewer
who reads slowly only the newest messages pass.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import sys
import termios
from collections.abc import Coroutine
from functools import partial
from typing import Any

import h11

from dimos_streams.common.hang_up import has_hung_up
from dimos_streams.common.http.bearer import authorization_in
from dimos_streams.common.http.own_origin import absolute_form
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.listening import listening_socket
from dimos_streams.common.tasks import OwnedTasks, end_tasks_silently
from dimos_streams.foxglove.door.admission import AdmissionRules
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.door.outbox import STALLED_S, NoHandshakeError, Outboxes
from dimos_streams.foxglove.door.subscriptions import Subscriptions

MAX_CONNECTIONS = 32
MAX_AT_THE_DOOR = 64
"""The largest number of connections without a request yet, which take no viewer's place; beyond it the one that has
said nothing for longest is cut off, since a viewer says at once what it wants."""
_MAX_HEAD = 16 * 1024
_HEAD_END = b"\r\n\r\n"
_HEAD_WITHIN_S = 10.0
_CHUNK = 64 * 1024
_BEHIND = 8 * 1024 * 1024
"""The bytes that the SDK has sent, and nobody has taken in here yet, from which on it does not keep up."""
_NO_HANDSHAKE = (
    "this is a WebSocket of Foxglove's protocol: GET over HTTP/1.1 is needed, with Upgrade, Connection,"
    " Sec-WebSocket-Key, Sec-WebSocket-Version: 13 and Sec-WebSocket-Protocol: foxglove.sdk.v1, each in one line"
)
_log = LimitedLog(logging.getLogger(__name__))


class ViewerDoor:
    """Accepts connections, and forwards those that may pass."""

    def __init__(self, rules: AdmissionRules, target: tuple[str, int], arrivals: Arrivals) -> None:
        """Make the door; ``target`` is the address at which the SDK serves."""
        self._rules = rules
        self._arrivals = arrivals
        self._target = target
        self._server: asyncio.Server | None = None
        self._connections = OwnedTasks()
        self._at_the_door: dict[asyncio.StreamWriter, None] = {}
        """The connections that have not got past the door, oldest first."""
        self._inside = 0
        self._outboxes = Outboxes()
        self._from_sdk: set[socket.socket] = set()

    @property
    def keeps_up(self) -> bool:
        """True if the SDK gets rid of what it has for viewers; it holds the rest once for each viewer."""
        return sum(map(_unread, self._from_sdk)) < _BEHIND

    async def open(self, host: str, port: int, *, port_is_kept: bool = False) -> int:
        """Serve and return the port; ``port_is_kept`` is true if a ``KeptPort`` keeps it. Raises ``OSError``."""
        listening = listening_socket(host, port, kept=port_is_kept)
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=_CHUNK)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Serve nobody any more. Twice is fine."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self._connections.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._at_the_door) >= MAX_AT_THE_DOOR:
            _log.warning("a viewer was cut off: %d others came before it had said what it wants", MAX_AT_THE_DOOR)
            silent = next(iter(self._at_the_door))
            del self._at_the_door[silent]
            silent.transport.abort()
        self._at_the_door[writer] = None
        # In a task of ours: one of asyncio's own would complain when it is cancelled (Python 3.11).
        self._connections.spawn(self._connected(reader, writer), name="viewer")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            logging.getLogger(__name__).debug("a viewer's connection ended: %s", error)
        except Exception as error:
            _log.exception("a viewer was let go: %s", error)
        finally:
            self._at_the_door.pop(writer, None)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, refusal = await self._head(reader)
        if refusal is None and self._inside >= MAX_CONNECTIONS:
            refusal = 503, f"{MAX_CONNECTIONS} viewers are connected already"
        if refusal is not None:
            await _refuse(writer, *refusal)
            return
        self._at_the_door.pop(writer, None)
        self._inside += 1
        try:
            await self._pass(head, reader, writer)
        except NoHandshakeError:
            await _refuse(writer, 400, _NO_HANDSHAKE)
        finally:
            self._inside -= 1

    async def _pass(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(*self._target, limit=_CHUNK)
        inner_writer.write(head)
        subscriptions = Subscriptions(inner_writer, STALLED_S, self._arrivals, partial(has_hung_up, writer))
        outbox, from_sdk = self._outboxes.open(subscriptions), inner_writer.get_extra_info("socket")
        self._from_sdk.add(from_sdk)
        try:
            await _either(subscriptions.forward(reader), outbox.fill(inner_reader), outbox.deliver(writer))
        finally:
            self._from_sdk.discard(from_sdk)
            self._outboxes.close(outbox)
            inner_writer.transport.abort()

    async def _head(self, reader: asyncio.StreamReader) -> tuple[bytes, tuple[int, str] | None]:
        """Return the bytes that were read, and the reason why they may not pass or None."""
        parser, data = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD), b""
        async with asyncio.timeout(_HEAD_WITHIN_S):
            while chunk := await reader.read(_MAX_HEAD):
                data += chunk
                try:
                    parser.receive_data(chunk)
                    event = parser.next_event()
                except h11.RemoteProtocolError as error:
                    return data, (error.error_status_hint, f"not a request: {error}")
                if isinstance(event, h11.Request):
                    if not data.endswith(_HEAD_END):  # what follows is forwarded frame by frame
                        return data, (400, "a viewer's request ends with CRLF, and nothing follows before its answer")
                    return data, self._rules.refusal(*_origin_form(event))
        raise ConnectionError("the viewer left before it had said what it wants")


def _origin_form(request: h11.Request) -> tuple[str, dict[str, str]]:
    """Return a request's path, with its query, and its headers, whose ``host`` is the one that is asked."""
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in request.headers}
    headers["authorization"] = authorization_in(request.headers)
    target = request.target
    if (absolute := absolute_form(target)) is not None:
        headers["host"], target = absolute[0].decode("latin-1"), absolute[1]
    return target.decode("latin-1"), headers


def _unread(connection: socket.socket) -> int:
    """The number of bytes that have come and that nobody has read; 0 for a connection that is closed already."""
    if connection.fileno() < 0:  # it was lost, and the task that forwards it has yet to see that
        return 0
    try:
        came = fcntl.ioctl(connection.fileno(), termios.FIONREAD, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(came, sys.byteorder)


async def _either(*ways: Coroutine[Any, Any, None]) -> None:
    """Run all ways until one has ended. Raises what ended it."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_tasks_silently(*tasks)


async def _refuse(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    """Say why a viewer may not pass: to it, and in the log, as viewers show nothing of such an answer."""
    _log.warning("a viewer was refused: %s", text)
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
