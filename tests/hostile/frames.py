"""WebSocket clients that send frames without end: ``python -m tests.hostile.frames PORT PATH KIND CONNECTIONS``."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

TEXT, PING = 1, 9
_LAST = 0x80
_READ = 64 * 1024
_AT_ONCE = 40_000
"""Frames in what is sent at once."""


def frame(kind: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    """A client's frame with fewer than 126 bytes, masked with zeros; ``kind`` 0 goes on with a message."""
    return bytes([kind | (_LAST if last else 0), 0x80 | len(payload), 0, 0, 0, 0]) + payload


KINDS = {
    "pings": (b"", frame(PING)),
    "long pings": (b"", frame(PING, b"x" * 125)),
    "pongs": (b"", frame(10)),
    "fragments": (frame(TEXT, b"x", last=False), frame(0, last=False)),
    "texts": (b"", frame(TEXT)),
}
"""By name: what is sent first, and what is sent again and again."""


def upgrade(port: int, path: str, *, receive_buffer: int | None = None) -> socket.socket:
    """A WebSocket on which nothing was said yet."""
    connection = socket.socket()
    connection.settimeout(10)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect(("127.0.0.1", port))
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError(f"no WebSocket at {path}: {head!r}")
        head += byte
    return connection


@contextlib.contextmanager
def sending(port: int, path: str, kind: str, connections: int) -> Iterator[subprocess.Popen[bytes]]:
    """Clients that send in a process of their own, and come again when they are cut off."""
    program = [sys.executable, "-m", "tests.hostile.frames", str(port), path, kind, str(connections)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()  # one of them sends
            yield process
            assert process.poll() is None
        finally:
            process.kill()


def _send(port: int, path: str, kind: str) -> None:
    begin, again = KINDS[kind]
    without_end = again * _AT_ONCE
    while True:
        with contextlib.suppress(OSError), upgrade(port, path) as connection:
            connection.sendall(begin)
            sys.stdout.write("sends\n")
            sys.stdout.flush()
            threading.Thread(target=_take, args=(connection,), daemon=True).start()
            while True:
                connection.sendall(without_end)


def _take(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(_READ):
            pass


if __name__ == "__main__":
    port, path, kind, connections = sys.argv[1:]
    for _ in range(int(connections)):
        threading.Thread(target=_send, args=(int(port), path, kind)).start()
