"""A bridge that serves real HTTP from a loop in a thread, and a plain reader of its event streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from collections.abc import Coroutine, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import requests

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.common.process.live_loop import new_live_loop
from tests.bridge.scene import Scene, Worker

T = TypeVar("T")

_BOUND_S = 30.0
"""So long may a busy machine take for an answer: who waits for longer hangs."""


class Served:
    """A scene on a loop of its own; call it from the test's thread."""

    def __init__(self, channels: Mapping[str, str] = MappingProxyType({}), **config: Any) -> None:
        self.config = {"port": 0, **config}
        self._channels = dict(channels)
        self._runner = asyncio.Runner(loop_factory=new_live_loop)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="bridge")
        self._streams: list[Stream] = []

    def _serve(self) -> None:
        with self._runner:
            self._loop = self._runner.get_loop()
            self._stopped = asyncio.Event()
            self._ready.set()
            self._runner.run(self._wait())

    async def _wait(self) -> None:
        await self._stopped.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the bridge's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_BOUND_S)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(_BOUND_S)
        self.scene = Scene(**self.config)
        self.scene.channels = self._channels
        self.run(self._open())

    async def _open(self) -> None:
        await self.scene.inner.open()
        await self.scene.start_bridge()
        await self.scene.add(Worker(name="worker"))
        await self.scene.offered("follow")

    def stop(self) -> None:
        for stream in self._streams:
            stream.close()
        if hasattr(self, "scene"):
            self.run(self.scene.close())
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return self.scene.bridge.url

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def keep_send_buffers_small(self) -> None:
        """Have the kernel take little of what a client does not read, for each connection that comes from now on: by
        itself it may take a megabyte, or not."""
        server = self.scene.bridge.endpoint.server
        assert server is not None
        assert server._server is not None
        (listening,) = server._server.servers[0].sockets
        with socket.fromfd(listening.fileno(), listening.family, listening.type) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)

    @property
    def broker(self) -> Broker:
        return self.scene.broker

    def get(self, path: str, **kwargs: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=_BOUND_S, **kwargs)

    def post(self, path: str, body: Any = None, **kwargs: Any) -> requests.Response:
        return requests.post(self.url + path, json=body, timeout=_BOUND_S, **kwargs)

    def stream(self, query: str = "", headers: str = "", receive_buffer: int | None = None) -> Stream:
        """An open event stream, closed with the bridge at the latest."""
        stream = Stream(self.port, query, headers, receive_buffer)
        self._streams.append(stream)
        return stream

    def call(self, skill: str, wait: str = "close", **arguments: Any) -> dict[str, Any]:
        """Call a skill; its view after its answer or close."""
        response = self.post(f"/calls?wait={wait}", {"skill": skill, "arguments": arguments, "caller": "test"})
        assert response.status_code == 201, response.text
        view: dict[str, Any] = response.json()
        return view


@contextlib.contextmanager
def served(channels: Mapping[str, str] = MappingProxyType({}), **config: Any) -> Iterator[Served]:
    """A bridge with a worker behind real HTTP on a free port, of a run with these channels."""
    made = Served(channels, **config)
    try:
        made.start()
        yield made
    finally:
        made.stop()


class Stream:
    """An open event stream, read from a bare socket."""

    def __init__(self, port: int, query: str = "", headers: str = "", receive_buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(_BOUND_S)
        self._raw, self._text = b"", b""
        try:
            self.head = self._ask(port, f"GET /tool_streams{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}")
        except BaseException:
            self.close()
            raise

    def _ask(self, port: int, head: str) -> bytes:
        """The head of the answer."""
        self._socket.connect(("127.0.0.1", port))
        self._socket.sendall(f"{head}\r\n".encode())
        while b"\r\n\r\n" not in self._raw:
            self._receive()
        answered, self._raw = self._raw.split(b"\r\n\r\n", 1)
        return answered

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise EOFError("the server closed the stream")
        self._raw += data

    def has_more(self) -> bool:
        """Whether something has come that was not read."""
        return bool(self._raw or self._text or select.select([self._socket], [], [], 0)[0])

    def block(self) -> bytes:
        """The next block of lines, without the blank line that ends it. Raises ``EOFError`` at the end."""
        while b"\n\n" not in self._text:
            self._text += self._chunk()
        block, self._text = self._text.split(b"\n\n", 1)
        return block

    def _chunk(self) -> bytes:
        """One chunk of a chunked body."""
        while b"\r\n" not in self._raw:
            self._receive()
        size, rest = self._raw.split(b"\r\n", 1)
        length = int(size, 16)
        if length == 0:
            raise EOFError("the response is complete")
        while len(rest) < length + 2:
            before = len(self._raw)
            self._receive()
            rest += self._raw[before:]
        self._raw = rest[length + 2 :]
        return rest[:length]

    def event(self) -> tuple[int, dict[str, Any]]:
        """The next event: its id and its data."""
        while True:
            lines = self.block().split(b"\n")
            if lines[0] == b"event: tool_stream":
                assert len(lines) == 3
                assert lines[1].startswith(b"id: ")
                assert lines[2].startswith(b"data: ")
                return int(lines[1][4:]), json.loads(lines[2][6:])

    def events(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        """The next events."""
        return [self.event() for _ in range(count)]

    def rest(self) -> list[tuple[int, dict[str, Any]]]:
        """All events up to the end of the stream."""
        found = []
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                found.append(self.event())
        return found

    def close(self) -> None:
        self._socket.close()
