"""WebSocket clients that send frames with their request, before they know whether it is accepted."""

from __future__ import annotations

import socket

from tests.bridge.http.test_vanishing_clients import UPGRADE
from tests.bridge.serving import served
from tests.hostile.frames import PING, TEXT, frame

_COMMAND = b'{"id": "early", "command": "cancel", "call_id": "nobody"}'


def answered(port: int, padding: int) -> tuple[bytes, bytes]:
    """The head of the answer to a request with so many more bytes, and the frames up to the answer to a command
    behind it."""
    lines = (*UPGRADE, f"Host: 127.0.0.1:{port}", f"Padding: {'x' * padding}", "", "")
    sent = "\r\n".join(lines).encode() + frame(PING, b"early") + frame(TEXT, _COMMAND)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent[:-20])
        connection.sendall(sent[-20:])
        said = b""
        while b'"id":"early"' not in said:
            more = connection.recv(65536)
            assert more, said
            said += more
    head, _, frames = said.partition(b"\r\n\r\n")
    return head, frames


def test_what_comes_with_the_request_is_read_once_it_is_accepted() -> None:
    with served() as bridge:
        for padding in (0, 900, 1500):  # less than what is taken apart at once, about as much, and more
            head, frames = answered(bridge.port, padding)
            assert head.startswith(b"HTTP/1.1 101")
            assert b"\x8a\x05early" in frames
            assert b'"problem":"unknown-call"' in frames
