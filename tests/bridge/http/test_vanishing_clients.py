"""Clients whose connections break while there is much to send to them: nobody writes on, and nothing is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from dimos_streams.bridge.monitor import routes
from dimos_streams.bridge.monitor.view import message
from dimos_streams.serving.route import StrictRoute
from dimos_streams.serving.server.protocol import Connections
from dimos_streams.serving.server.web_socket import BoundedWebSocket
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.scene import event
from tests.bridge.serving import Served, served
from tests.helpers import wait_for

UPGRADE = (
    "GET /monitor HTTP/1.1",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
GOODBYE = bytes([0x88, 0x80, 0, 0, 0, 0])
"""The frame by which a client closes a WebSocket."""
CLIENTS = 5
MESSAGES = 500


def connected(bridge: Served, *lines: str, body: str = "") -> socket.socket:
    """A connection whose request is being answered."""
    connection = socket.create_connection(("127.0.0.1", bridge.port), timeout=10)
    length = [f"Content-Length: {len(body)}"] if body else []
    request = (lines[0], f"Host: 127.0.0.1:{bridge.port}", *lines[1:], *length, "", "")
    connection.sendall("\r\n".join(request).encode() + body.encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    assert head.startswith((b"HTTP/1.1 101", b"HTTP/1.1 200"))
    return connection


def vanish(bridge: Served, connections: list[socket.socket], then: Callable[[], None]) -> None:
    """Break connections so that the next write to each fails, and let something happen before the bridge can know."""

    async def at_once() -> None:
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        then()

    bridge.run(at_once())


def complaints(settled_log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in settled_log.records if record.name == "asyncio"]


def publish(bridge: Served, call_id: str, size: int) -> None:
    events = [event(seq, call_id=call_id, text="x" * size) for seq in range(100, 100 + MESSAGES)]
    bridge.broker.ledger.enter(events)


def test_watchers(settled_log: pytest.LogCaptureFixture) -> None:
    with served() as bridge:
        monitor = bridge.scene.bridge.monitor
        connections = [connected(bridge, *UPGRADE) for _ in range(CLIENTS)]
        wait_for(lambda: monitor.statistics().watchers == CLIENTS)

        def report() -> None:
            for watcher in monitor._watchers:
                for _ in range(MESSAGES):
                    watcher.offer(message("event", text="x"))

        vanish(bridge, connections, report)
        wait_for(lambda: monitor.statistics().watchers == 0)
    assert complaints(settled_log) == []


def test_watchers_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_WATCHERS", 1)
    with served() as bridge, connected(bridge, *UPGRADE) as first, connected(bridge, *UPGRADE) as second:
        wait_for(lambda: bridge.scene.bridge.monitor.statistics().watchers == 1)
        assert b"1 watch already" in second.recv(4096)
        assert first.recv(4096)


def test_a_bridge_ends_while_a_watcher_that_has_said_goodbye_still_has_to_be_sent_something(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    with served() as bridge:
        monitor = bridge.scene.bridge.monitor
        with connected(bridge, *UPGRADE) as slow, connected(bridge, *UPGRADE) as other:
            wait_for(lambda: monitor.statistics().watchers == 2)

            async def report() -> bool:
                for watcher in monitor._watchers:
                    watcher.offer(message("event", text="x" * 20_000))
                return any(transport.get_write_buffer_size() for transport in transports(bridge))

            wait_for(lambda: bridge.run(report()))
            slow.sendall(GOODBYE)
            wait_for(lambda: any(transport.is_closing() for transport in transports(bridge)))
            bridge.run(bridge.scene.close())
            for connection in (slow, other):
                while connection.recv(1 << 20):
                    pass
    assert [record for record in settled_log.records if record.levelno >= logging.ERROR] == []


def transports(bridge: Served) -> list[asyncio.Transport]:
    """Those of the bridge's connections."""
    server = bridge.scene.bridge.endpoint.server
    assert server is not None
    assert server._server is not None
    return [connection.transport for connection in list(server._server.server_state.connections)]


@pytest.mark.slow
def test_event_streams(settled_log: pytest.LogCaptureFixture) -> None:
    with served() as bridge:
        call_id = bridge.call("follow", wait="answer", description="ann")["call_id"]
        connections = [connected(bridge, "GET /tool_streams HTTP/1.1") for _ in range(CLIENTS)]
        wait_for(lambda: bridge.scene.bridge.broadcast.statistics().readers == CLIENTS)
        vanish(bridge, connections, lambda: publish(bridge, call_id, 10_000))
        wait_for(lambda: bridge.scene.bridge.broadcast.statistics().readers == 0)
    assert complaints(settled_log) == []


def test_mcp_clients(settled_log: pytest.LogCaptureFixture) -> None:
    with served() as bridge:
        session = bridge.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]
        asked = {"name": "patrol", "arguments": {}, "_meta": {"progressToken": 1}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
        kinds = ("Content-Type: application/json", f"Mcp-Session-Id: {session}")
        connection = connected(bridge, "POST /mcp HTTP/1.1", *kinds, body=json.dumps(call))
        wait_for(lambda: any(each.skill == "patrol" for each in bridge.broker.ledger.calls.open))
        (open_call,) = bridge.broker.ledger.calls.open
        wait_for(lambda: open_call.state == "open" and bridge.scene.bridge.broadcast.statistics().readers == 1)
        vanish(bridge, [connection], lambda: publish(bridge, open_call.call_id, 100))
        wait_for(lambda: bridge.scene.bridge.broadcast.statistics().readers == 0)
    assert complaints(settled_log) == []


def test_a_sender_that_goes_before_its_body_has_come() -> None:
    app = FastAPI()
    app.router.route_class = StrictRoute
    app.post("/calls")(lambda: None)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/calls", "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400


def test_a_watcher_that_goes_before_it_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    transport = Mock(
        spec=asyncio.Transport, **{"is_closing.return_value": False, "get_extra_info.return_value": None}
    )

    async def watch(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        transport.is_closing.return_value = True
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "a snapshot"})

    async def connect() -> None:
        state = ServerState()
        config = Config(watch, log_config=None)
        config.load()
        connection = BoundedWebSocket(Connections(1), config=config, server_state=state, app_state={})
        connection.connection_made(transport)
        connection.data_received("\r\n".join((UPGRADE[0], "Host: robot", *UPGRADE[1:], "", "")).encode())
        await asyncio.gather(*state.tasks)

    asyncio.run(connect())
    transport.close.assert_called()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
