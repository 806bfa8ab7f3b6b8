"""What a connection leaves behind once it is closed: nothing that waits for the garbage collector.

That looks at all it finds in a single turn of the loop, a tenth of a second where connections came and went for ten
seconds; and until it does, they keep their memory.
"""

from __future__ import annotations

import gc
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.bridge.http.test_greedy_requests import connect
from tests.bridge.serving import Served, served
from tests.helpers import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.feature("A3")]

_COUNT = 40
_REFUSED = b'{"skill": "unknown"}'
_CHUNKED, _CLOSE = "Transfer-Encoding: chunked", "Connection: close"


def requests(port: int) -> dict[str, tuple[bytes, bool]]:
    """What connections ask for, and whether it is answered."""

    def head(line: str, *headers: str) -> bytes:
        return "\r\n".join([f"{line} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", ""]).encode()

    declared = ("Content-Type: application/json", f"Content-Length: {len(_REFUSED)}")
    return {
        "a short answer": (head("GET /healthz", _CLOSE), True),
        "an answer, and no more": (head("GET /healthz"), True),
        "a list": (head("GET /calls", _CLOSE), True),
        "what is refused": (head("POST /calls", *declared) + _REFUSED, True),
        "no HTTP": (b"nonsense\r\n\r\n", True),
        "half a body": (head("POST /calls", "Content-Length: 1000") + b"x", False),
        "a body in too many pieces": (head("POST /calls", _CHUNKED) + b"1\r\nx\r\n" * 5000, True),
        "a stream": (head("GET /tool_streams?from=1"), True),
        "nothing": (b"", False),
    }


@pytest.fixture(scope="module")
def bridge() -> Iterator[Served]:
    with served() as made:
        made.call("follow", description="x", steps=3)
        gc.collect()
        gc.freeze()  # each look would be at what all tests before have left, too
        yield made


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("what", requests(0))
def test_a_connection_that_is_gone_leaves_nothing_to_the_collector(bridge: Served, what: str, is_reset: bool) -> None:
    data, is_answered = requests(bridge.port)[what]
    server = bridge.scene.bridge.endpoint.server
    assert server is not None
    assert server._server is not None
    state = server._server.server_state
    gc.collect()
    gc.disable()
    try:
        for _ in range(_COUNT):
            with connect(bridge, data) as connection:
                if is_answered:
                    assert connection.recv(100)
                if is_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_for(lambda: not state.connections and not state.tasks)
        assert gc.collect() < _COUNT, "less than one object for each"
    finally:
        gc.enable()
