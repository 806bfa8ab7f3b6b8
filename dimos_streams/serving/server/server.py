"""An HTTP server on the running loop, that takes no signals and stops within a bound."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from dimos_streams.common.limited_log import LimitedRecords
from dimos_streams.common.process.listening import listening_socket, why_not_listening
from dimos_streams.common.process.loopback import authority_here
from dimos_streams.common.tasks import end_tasks
from dimos_streams.errors import UserError
from dimos_streams.serving.server.idle_connections import KEEP_ALIVE_S, cut_idle
from dimos_streams.serving.server.protocol import BoundedProtocol, Connections
from dimos_streams.serving.server.request_guard import MAX_BODY
from dimos_streams.serving.server.timing import PING_S
from dimos_streams.serving.server.web_socket import BoundedWebSocket

_SEND_BUFFER = 256 * 1024
ACCEPTED = 16
"""Number of connections that are accepted in one turn of the loop."""
_GRACE_S = 0.3
_COMMANDS_WAITING = 4
"""Maximum number of messages of a WebSocket that wait to be read."""
_LAST_STEPS = 100


_LIMITED = LimitedRecords()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing: signals are the process's business."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class HttpServer:
    """Serves one app on one socket."""

    def __init__(
        self, host: str, port: int, *, ping_s: float = PING_S, connections: int, port_is_kept: bool = False
    ) -> None:
        """WebSockets are pinged every ``ping_s`` seconds, and closed where no answer comes for twice as long. At most
        ``connections`` connections are open at a time. ``port_is_kept`` is true if a ``KeptPort`` keeps the port."""
        self._host, self._port, self._port_is_kept = host, port, port_is_kept
        self.connections = Connections(connections)
        self._ping_s = ping_s
        self._listening: list[socket.socket] = []
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._cutting: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is bound; for port 0, the one that was free."""
        return self._port

    @property
    def url(self) -> str:
        """The URL at which this machine reaches the server."""
        return f"http://{authority_here(self._host, self.port)}"

    def bind(self) -> None:
        """Take the port. Raises ``UserError`` if it can't be had."""
        try:
            # Connections inherit it: what the kernel takes for a client that does not read counts as sent.
            bound = listening_socket(self._host, self._port, send_buffer=_SEND_BUFFER, kept=self._port_is_kept)
        except OSError as error:
            raise UserError(why_not_listening(self._host, self._port, error, chosen_by="--port")) from error
        self._port = bound.getsockname()[1]
        # libuv accepts one connection in each turn of the loop for each descriptor that listens. With a single one,
        # who connects would wait for as many turns as others came before, and greedy clients make turns long.
        self._listening = [bound, *(bound.dup() for _ in range(ACCEPTED - 1))]

    async def serve(self, app: ASGIApp) -> None:
        """Begin to serve; return when requests are taken. ``bind`` comes first."""
        assert self._listening
        config = uvicorn.Config(
            app,
            http=partial(BoundedProtocol, self.connections),  # type: ignore[arg-type]
            ws=partial(BoundedWebSocket, self.connections),  # type: ignore[arg-type]
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_level="warning",  # what it logs otherwise of WebSockets has the token of their URL in it
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
            ws_max_size=MAX_BODY,
            ws_max_queue=_COMMANDS_WAITING,
            ws_per_message_deflate=False,
            ws_ping_interval=self._ping_s,
            ws_ping_timeout=2 * self._ping_s,
        )
        server = self._server = _Server(config)
        self._cutting = asyncio.get_running_loop().create_task(cut_idle(server), name="http idle")
        # It has a line for every malformed request.
        logging.getLogger("uvicorn.error").addFilter(_LIMITED)
        self._task = asyncio.get_running_loop().create_task(server.serve(self._listening), name="http")
        await server.ready.wait()

    def abort(self, client: object) -> None:
        """End the connection of a client's address without waiting for it to take what was sent."""
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                transport = getattr(connection, "transport", None)
                if transport is not None and client in (None, transport.get_extra_info("peername")):
                    transport.abort()

    def release(self) -> None:
        """Give the port back. Twice is fine."""
        for listening in self._listening:
            listening.close()

    async def cut(self) -> None:
        """End all connections without any time passing on the loop: in virtual time only the run may spend it."""
        server, task, self._task = self._server, self._task, None
        if server is None or task is None:
            return
        for _ in range(_LAST_STEPS):
            await asyncio.sleep(0)  # streams that have ended say so to their clients
        if self._cutting is not None:
            self._cutting.cancel()
        for listening in server.servers:
            listening.close()
        self.abort(None)
        await end_tasks(task)

    async def stop(self) -> None:
        """End all connections: those whose responses end within a moment by themselves, the others at once."""
        server, task, self._task = self._server, self._task, None
        if server is None or task is None:
            return
        server.should_exit = True
        if self._cutting is not None:
            self._cutting.cancel()
        done, _ = await asyncio.wait([task], timeout=_GRACE_S)
        if not done:
            self.abort(None)
            for request in server.server_state.tasks:
                request.cancel()
        await task
