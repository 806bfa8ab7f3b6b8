"""Requests that cost more than they are worth: their work is bounded, and others have their turn in between."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import uvicorn

from dimos_streams.serving.server import idle_connections as idle
from dimos_streams.serving.server import protocol as http_protocol
from dimos_streams.serving.server import request_guard as guard
from dimos_streams.serving.server import turns
from dimos_streams.serving.server.metered_h11 import MAX_PIECES, MeteredConnection
from dimos_streams.serving.server.protocol import MAX_HEAD, BoundedProtocol, Connections
from dimos_streams.serving.server.server import ACCEPTED
from tests.bridge.serving import Served, served
from tests.helpers import wait_for

pytestmark = pytest.mark.slow

CONNECTIONS = 8
CHUNKS = 40_000


def connect(bridge: Served, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", bridge.port), timeout=10)
    connection.sendall(data)
    return connection


def head(bridge: Served, line: str = "POST /calls", *headers: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", f"Host: 127.0.0.1:{bridge.port}", *headers, "", ""]).encode()


def response(connection: socket.socket) -> bytes:
    """One response, after which the connection may go on."""
    found = connection.recv(65536)
    while (length := re.search(rb"content-length: (\d+)", found)) is None:
        found += connection.recv(65536)
    while len(found.partition(b"\r\n\r\n")[2]) < int(length[1]):
        found += connection.recv(65536)
    return found


def answer(connection: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            found += data
    return found


def send_all(connection: socket.socket, data: bytes) -> None:
    """Send it to a server that may end the connection meanwhile."""
    with contextlib.suppress(OSError):
        connection.sendall(data)


@contextlib.contextmanager
def held_up(bridge: Served) -> Iterator[None]:
    """A time in which the server's loop does nothing."""
    holds, released = threading.Event(), threading.Event()

    def hold() -> None:
        holds.set()
        released.wait(30)

    bridge._loop.call_soon_threadsafe(hold)
    assert holds.wait(10)
    try:
        yield
    finally:
        released.set()


def taken_by_kernel(connection: socket.socket, data: bytes) -> int:
    """Send until the kernel takes no more; the number of bytes that it has taken."""
    connection.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while sent < len(data):
            sent += connection.send(data[sent:])
    connection.settimeout(10)
    return sent


def shared(bridge: Served) -> Connections:
    server = bridge.scene.bridge.endpoint.server
    assert server is not None
    return server.connections


class Parsed:
    """How much HTTP was parsed, in all and at most in one turn of the bridge's loop."""

    def __init__(self, bridge: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self.all = self.most = 0
        self._before = 0
        self._loop = bridge._loop
        next_event = MeteredConnection.next_event

        def counted(connection: Any) -> Any:
            self.all += 1
            return next_event(connection)

        monkeypatch.setattr(MeteredConnection, "next_event", counted)
        self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        self.most, self._before = max(self.most, self.all - self._before), self.all
        self._loop.call_soon(self._turn)


@pytest.mark.feature("F6")
def test_what_waits_to_be_parsed_is_bounded_for_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_UNPARSED", 500_000)
    with served() as bridge, contextlib.ExitStack() as stack:
        server = bridge.scene.bridge.endpoint.server
        assert server is not None
        assert server._server is not None
        state, most = server._server.server_state, 0

        def look() -> None:
            nonlocal most
            waiting = (len(each._unread) for each in state.connections if isinstance(each, BoundedProtocol))
            most = max(most, sum(waiting))
            bridge._loop.call_soon(look)

        bridge._loop.call_soon_threadsafe(look)
        body = head(bridge, "POST /calls", "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * CHUNKS
        with held_up(bridge):  # else it may be as fast as they are, and nothing waits
            connections = [stack.enter_context(connect(bridge)) for _ in range(20)]
            rests = [body[taken_by_kernel(connection, body) :] for connection in connections]
        threads = [threading.Thread(target=send_all, args=given) for given in zip(connections, rests, strict=True)]
        for thread in threads:
            thread.start()
        wait_for(lambda: shared(bridge).cut > 0)
        assert bridge.get("/healthz").status_code == 200
        for thread in threads:
            thread.join(30)
        stack.close()
        assert 0 < most <= 500_000 + 256_000, "and what one read brings"
        wait_for(lambda: not state.connections and shared(bridge)._unparsed_bytes == 0)


@pytest.mark.feature("F6")
@pytest.mark.parametrize("token", [None, "secret"])
def test_bodies_in_tiny_chunks_take_a_bounded_share_of_the_loop(
    token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(token=token) as bridge:
        parsed = Parsed(bridge, monkeypatch)
        body = head(bridge, "POST /calls", "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * CHUNKS

        def send(answers: list[bytes]) -> None:
            with connect(bridge) as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(body)
                answers.append(answer(connection)[:12])

        answers: list[bytes] = []
        threads = [threading.Thread(target=send, args=(answers,)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        # A connection that is ended while it still sends may lose its answer on the way.
        assert set(answers) <= {b"HTTP/1.1 401" if token else b"HTTP/1.1 413", b""}
        assert parsed.most <= CONNECTIONS * 3 * http_protocol._EVENTS
        assert parsed.all <= CONNECTIONS * (MAX_PIECES * 1.2 + 100)


def test_a_body_in_too_many_pieces_is_refused_with_the_reason() -> None:
    with served() as bridge:
        chunks = b"1\r\nx\r\n" * (MAX_PIECES + 1)
        with connect(bridge, head(bridge, "POST /calls", "Transfer-Encoding: chunked") + chunks) as connection:
            refusal = answer(connection)
        assert refusal.startswith(b"HTTP/1.1 413 ")
        assert b"more than 4096 pieces" in refusal


def test_a_body_may_come_in_chunks_as_small_as_encoders_make_them() -> None:
    with served() as bridge:
        body = b'{"skill": "at_once", "arguments": {"value": 1}}' + b" " * (MAX_PIECES // 2)
        kind = {"Content-Type": "application/json"}
        with requests.Session() as connection:
            for _ in range(2):  # each request counts for itself
                pieces = (bytes([byte]) for byte in body)
                response = connection.post(f"{bridge.url}/calls?wait=close", data=pieces, headers=kind, timeout=10)
                assert response.json()["result"] == 1, "the last of several turns is not lost"


def test_a_head_is_bounded() -> None:
    with served() as bridge:
        for before in (b"", head(bridge, "GET /healthz")):
            with connect(bridge, before + b"GET /healthz HTTP/1.1\r\n" + b"a:b\r\n" * (MAX_HEAD // 2)) as connection:
                assert b"HTTP/1.1 400 Bad Request" in answer(connection)


def test_pipelined_requests_are_all_answered() -> None:
    with served() as bridge, connect(bridge, head(bridge, "GET /skills") * 200) as connection:
        connection.sendall(head(bridge, "GET /skills", "Connection: close"))
        assert answer(connection).count(b"HTTP/1.1 200") == 201


@pytest.mark.feature("F6")
def test_the_bodies_that_come_at_once_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_BODIES", 100_000)
    with served() as bridge, contextlib.ExitStack() as stack:
        begun = head(bridge, "POST /calls", "Content-Length: 50000") + b" " * 49_000
        slow = [stack.enter_context(connect(bridge, begun)) for _ in range(2)]
        wait_for(lambda: held(bridge) == 98_000)
        with connect(bridge, begun) as connection:
            assert connection.recv(65536).startswith(b"HTTP/1.1 503")
        slow[0].close()
        wait_for(lambda: held(bridge) == 49_000)
        assert bridge.call("at_once", value=1)["result"] == 1


def held(bridge: Served) -> int:
    app: Any = running(bridge).config.app
    return int(app._bodies)


def running(bridge: Served) -> uvicorn.Server:
    server = bridge.scene.bridge.endpoint.server
    assert server is not None
    assert server._server is not None
    return server._server


def test_half_a_body_is_no_request() -> None:
    with served() as bridge:
        body = b'{"skill": "at_once", "arguments": {"value": 1}}'
        chunk = b"%x\r\n%b\r\n" % (len(body), body)
        kinds = ("Transfer-Encoding: chunked", "Content-Type: application/json")
        connect(bridge, head(bridge, "POST /calls", *kinds) + chunk).close()
        assert bridge.call("at_once", value=2)["result"] == 2
        assert [view["result"] for view in bridge.get("/calls").json()] == [2]


@pytest.mark.feature("F6")
def test_the_connections_at_a_time_are_bounded_and_idle_ones_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 4)
    with served() as bridge, contextlib.ExitStack() as stack:
        idle_ones = [stack.enter_context(connect(bridge)) for _ in range(4)]
        streams = [bridge.stream() for _ in range(3)]
        assert [answer(connection) for connection in idle_ones[:3]] == [b""] * 3
        assert bridge.call("at_once", value=1)["result"] == 1, "the fourth has given way"
        streams.append(bridge.stream())
        with connect(bridge) as connection:
            assert answer(connection).startswith(b"HTTP/1.1 503")
        assert [stream.event()[0] for stream in streams[:3]] == [1] * 3
        assert shared(bridge).cut == 5


def test_who_asks_now_and_then_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "IDLE_BOUND_S", 1.0)
    with served() as bridge, requests.Session() as session:
        pause = threading.Event()
        ports = set()
        for _ in range(13):
            with session.get(f"{bridge.url}/healthz", timeout=10, stream=True) as response:
                connection: Any = response.raw._connection
                ports.add(connection.sock.getsockname()[1])
                assert response.json()["status"] == "ok"
            pause.wait(0.1)
        assert len(ports) == 1


def test_a_connection_that_was_answered_is_kept_for_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "IDLE_BOUND_S", 1.0)
    with served() as bridge, connect(bridge, head(bridge, "GET /healthz")) as kept:
        assert response(kept).startswith(b"HTTP/1.1 200")
        with connect(bridge) as fresh:
            assert answer(fresh) == b"", "one that asks for nothing is cut, and was opened later"
        kept.sendall(b"GET /healthz HTTP/1.1\r\n")
        kept.sendall(head(bridge, "GET /healthz").partition(b"\r\n")[2])
        assert response(kept).startswith(b"HTTP/1.1 200")
        assert running(bridge).config.timeout_keep_alive == idle.KEEP_ALIVE_S >= 60, "clients close theirs before"
        monkeypatch.setattr(idle, "KEEP_ALIVE_S", 0.2)
        assert answer(kept) == b""


@pytest.mark.feature("A3")
def test_what_waits_for_clients_that_do_not_read_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_UNSENT", 200_000)
    with served(send_timeout_s=60.0) as bridge:
        bridge.call("count", label="x" * 10_000, to=200)
        with most_unsent(bridge) as most, unread(bridge, 20) as streams:
            wait_for(lambda: shared(bridge).cut >= 5)
            assert 100_000 < max(most) <= 200_000, "at any turn of the loop"
            wait_for(lambda: bridge.run(unsent(bridge)) <= 200_000)  # with those that are being cut off
            assert [offset for offset, _ in bridge.stream("?from=1").events(202)] == list(range(1, 203))
            assert len(streams) == 20


@contextlib.contextmanager
def unread(bridge: Served, count: int) -> Iterator[list[Any]]:
    streams = [bridge.stream("?from=1", receive_buffer=4096) for _ in range(count)]
    yield streams


async def unsent(bridge: Served) -> int:
    connections = running(bridge).server_state.connections
    return sum(each.transport.get_write_buffer_size() for each in connections)


@contextlib.contextmanager
def most_unsent(bridge: Served) -> Iterator[list[int]]:
    """What waits for open connections in each turn of the loop; one that is cut off goes in the next."""
    found = [0]

    async def watch() -> None:
        while True:
            connections = running(bridge).server_state.connections
            still_open = [each.transport for each in connections if not each.transport.is_closing()]
            found.append(sum(each.get_write_buffer_size() for each in still_open))
            await asyncio.sleep(0)

    async def begin() -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(watch())

    async def end() -> None:
        watching.cancel()

    watching = bridge.run(begin())
    try:
        yield found
    finally:
        bridge.run(end())


def test_requests_that_come_all_at_once_are_begun_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as bridge, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(bridge)) for _ in range(200)]
        wait_for(lambda: len(running(bridge).server_state.connections) == 200)
        parsed = Parsed(bridge, monkeypatch)

        async def ask() -> None:
            for connection in connections:
                connection.sendall(head(bridge, "GET /skills", "Connection: close"))

        bridge.run(ask())
        assert [answer(connection)[:12] for connection in connections] == [b"HTTP/1.1 200"] * 200
        assert parsed.most <= 2 * turns.MOST * 4


@pytest.mark.feature("F6")
def test_who_connects_does_not_wait_for_a_turn_of_the_loop_for_each_that_came_before() -> None:
    with served() as bridge, contextlib.ExitStack() as stack:

        async def turns_until_accepted() -> int:
            """All have connected before the loop can take the first."""
            for _ in range(8 * ACCEPTED):
                stack.enter_context(connect(bridge))
            count = 0
            while len(running(bridge).server_state.connections) < 8 * ACCEPTED:
                await asyncio.sleep(0)
                count += 1
            return count

        assert bridge.run(turns_until_accepted()) <= 8 + 8


@pytest.mark.virtual_time
@pytest.mark.parametrize("asks_first", [True, False])
async def test_a_body_that_is_too_large_takes_no_room_of_others_nor_is_read_if_its_client_asks(
    asks_first: bool,
) -> None:
    pieces, statuses = [b" " * (guard.MAX_BODY // 2)] * 4, list[int]()
    length = sum(map(len, pieces))

    async def app(*_: object) -> None:
        raise AssertionError("nobody is asked to read it")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % length)]
    headers += [(b"expect", b"100-continue")] if asks_first else []
    guarded = guard.Guard(app, host="127.0.0.1", token=None)
    scope = {"type": "http", "method": "POST", "path": "/calls", "query_string": b"", "headers": headers}
    await guarded(scope, receive, send)
    assert (statuses, guarded._bodies, len(pieces)) == ([413], 0, 4 if asks_first else 0)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("announced", "taken", "closes"),
    [
        (None, guard.MAX_DRAINED // guard.MAX_BODY + 1, True),
        (guard.MAX_DRAINED + 1, 0, True),
        (2 * guard.MAX_BODY, 2, False),
    ],
    ids=["without an end", "far too large", "too large"],
)
async def test_of_a_body_that_is_too_large_so_much_is_read_that_the_connection_can_be_kept(
    announced: int | None, taken: int, closes: bool
) -> None:
    pieces, ends = 0, list[bool]()

    async def app(*_: object) -> None:
        raise AssertionError("nobody is asked to read it")

    async def receive() -> dict[str, Any]:
        nonlocal pieces
        pieces += 1
        assert pieces <= taken
        return {"type": "http.request", "body": b" " * guard.MAX_BODY, "more_body": closes or pieces < taken}

    async def send(message: Any) -> None:
        if "status" in message:
            assert message["status"] == 413
            ends.append((b"connection", b"close") in message["headers"])

    length = (b"transfer-encoding", b"chunked") if announced is None else (b"content-length", b"%d" % announced)
    guarded = guard.Guard(app, host="127.0.0.1", token=None)
    headers = [(b"host", b"localhost"), length]
    scope = {"type": "http", "method": "POST", "path": "/calls", "query_string": b"", "headers": headers}
    await guarded(scope, receive, send)
    assert (pieces, ends, guarded._bodies) == (taken, [closes], 0)
