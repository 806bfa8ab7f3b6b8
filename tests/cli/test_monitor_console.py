"""What `monitor` does with a bridge that is none."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import pytest
from websockets.frames import Frame, Opcode
from websockets.utils import accept_key

from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError
from dimos_streams.cli.consoles.monitor_console import watch
from tests.client.event_server import Peer, event_server

_COUNTS = {
    "open_calls": 0,
    "leases": {},
    "broadcast": {"readers": 0, "lag": 0, "coalesced": 0, "cut": 0},
    "receiver": {"delivered": 0, "gaps": 0, "malformed": 0},
}
_HEALTH = json.dumps({"status": "ok", "lost": [], "offset": 1, "counts": _COUNTS}).encode()
_HUGE = b"\x81\x7f" + (2**40).to_bytes(8)
"""The head of a frame that has a terabyte."""


@pytest.mark.parametrize("goes", ["before", "after"])
def test_a_bridge_that_goes_between_two_requests_is_said_to_have_gone(goes: str) -> None:
    def hang_up(peer: Peer) -> None:
        if peer.target == "/healthz":
            peer.answer("200 OK", _HEALTH)
        elif goes == "after":
            peer.send(b"HTTP/1.1 101 Switching")

    with event_server(hang_up) as bridge, pytest.raises(BridgeUnreachableError, match="has ended the connection: "):
        asyncio.run(watch(BridgeAddress(bridge.url.removesuffix("/events")), "", as_json=False))


def test_a_bridge_that_has_gone_before_it_is_watched_is_named() -> None:
    def answer_once(listener: socket.socket) -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(65536)
            listener.close()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(_HEALTH), _HEALTH))

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    answering = threading.Thread(target=answer_once, args=(listener,))
    answering.start()
    with pytest.raises(BridgeUnreachableError, match=rf"{url} has ended the connection: "):
        asyncio.run(watch(BridgeAddress(url), "", as_json=False))
    answering.join()


def test_the_token_is_not_taken_along_to_where_a_redirection_leads() -> None:
    def lead(peer: Peer) -> None:
        if peer.target == "/healthz":
            peer.answer("200 OK", _HEALTH)
        else:
            peer.answer("302 Found", b"", f"Location: {elsewhere.url.replace('http', 'ws')}\r\n")

    with event_server(lambda peer: peer.answer("400 Bad Request")) as elsewhere, event_server(lead) as bridge:
        address = BridgeAddress(bridge.url.removesuffix("/events"), "t0ken")
        with pytest.raises(BridgeUnreachableError, match=r"refuses to be watched: .*302"):
            asyncio.run(watch(address, "", as_json=False))
        assert [peer.headers.get("authorization") for peer in bridge.requests] == ["Bearer t0ken"] * 2
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"no JSON", "is no bridge: WS /monitor: expected ident"),
        (b"null", "is no bridge: WS /monitor: its message: it must be an object"),
        (b'{"type": "weather", "seq": 1}', "has ended the connection: "),  # a newer bridge's is passed over
        (b'{"type": "event", "seq": 1}', "is no bridge: WS /monitor: event.event: it is missing"),
        (None, "has ended the connection: frame with 1099511627776 bytes exceeds limit"),
    ],
)
def test_what_is_no_message_of_a_bridge_is_said_and_takes_no_memory(frame: bytes | None, why: str) -> None:
    def speak(peer: Peer) -> None:
        if peer.target == "/healthz":
            peer.answer("200 OK", _HEALTH)
            return
        accept = accept_key(peer.headers["sec-websocket-key"])
        head = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        peer.send(f"HTTP/1.1 101 Switching Protocols\r\n{head}".encode())
        if frame is None:
            peer.send(_HUGE)
            peer.socket.recv(1024)  # the close of a client that reads no further
        else:
            peer.send(Frame(Opcode.TEXT, frame).serialize(mask=False))

    with event_server(speak) as bridge:
        with pytest.raises(BridgeUnreachableError, match=why):
            asyncio.run(watch(BridgeAddress(bridge.url.removesuffix("/events")), "", as_json=True))
        assert "sec-websocket-extensions" not in bridge.requests[-1].headers, "what is packed has no bound"
