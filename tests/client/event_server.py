"""An HTTP server whose every connection is played by a function of the test."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Content-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n"
)
"""The head of a stream of events, as bridges and hubs send it."""


@dataclass
class Peer:
    """One accepted connection, its request read."""

    socket: socket.socket
    headers: dict[str, str]
    target: str
    body: bytes
    gone: threading.Event
    """Set when the server is closed."""

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(data)

    def chunk(self, data: bytes) -> None:
        """One chunk of a chunked answer."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, status: str, body: bytes = b"", headers: str = "") -> None:
        """A whole answer."""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
        self.send(head.encode() + body)

    def hang_up_noticed(self) -> bool:
        """Wait until the client is gone or the server is closed; whether it was the client."""
        self.socket.settimeout(0.05)
        while not self.gone.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.socket.recv(1024):
                    return True
        return False


Play = Callable[[Peer], None]


@dataclass
class EventServer:
    """Listens on loopback; ``play`` gets each connection on a thread of its own."""

    play: Play
    requests: list[Peer] = field(default_factory=list)
    url: str = ""
    gone: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        while not self.gone.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            thread = threading.Thread(target=self.meet, args=(connection,), name="test server")
            thread.start()
            self.threads = [other for other in self.threads if other.is_alive()] + [thread]

    def meet(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            peer = self.read_request(connection)
            if peer is not None:
                self.requests.append(peer)
                self.play(peer)

    def read_request(self, connection: socket.socket) -> Peer | None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(4096)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(4096)
        return Peer(connection, headers, first.split()[1], body, self.gone)


@contextlib.contextmanager
def event_server(play: Play) -> Iterator[EventServer]:
    """A server on a free port; at the end everything of it is gone."""
    server = EventServer(play)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/events"
        thread = threading.Thread(target=server.serve, args=(listener,), name="test server")
        thread.start()
        try:
            yield server
        finally:
            server.gone.set()
            thread.join()
            for other in server.threads:
                other.join()
