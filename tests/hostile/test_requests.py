"""A live bridge under hostile HTTP requests: it lives, logs little, and serves the good ones in between.

``DIMOS_STREAMS_FUZZ_REQUESTS`` makes it longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
from pathlib import Path

import pytest

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.serving.server import idle_connections as idle
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.serving import served
from tests.hostile.requests import RequestFuzzer
from tests.hostile.watch import Watch
from tests.live.mission import Mission, running

COUNT = int(os.environ.get("DIMOS_STREAMS_FUZZ_REQUESTS", "2000"))
SEED = int(os.environ.get("DIMOS_STREAMS_FUZZ_SEED", "1"))
_AT_ONCE = 16
_STALLED = 100
_TURN_S = 0.03

pytestmark = [pytest.mark.live, pytest.mark.timeout(60 + COUNT / 50)]

_logger = logging.getLogger(__name__)

_SPECS = (
    ModuleSpec(name="mover", type="tests.live.modules:Mover"),
    ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge"),
)
SERVED = Blueprint(name="served", modules={spec.name: spec for spec in _SPECS})


async def send(port: int, data: bytes, *, reset: bool) -> bytes:
    """Send what a request is, take what comes within a moment, and leave, politely or not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_TURN_S):
            writer.write(data)
            await writer.drain()
            answer = await reader.read(65536)
    if reset:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return answer


async def attack(port: int) -> list[bytes]:
    """All requests, some at a time; the status lines of the answers."""
    fuzzer = RequestFuzzer(port, SEED)
    requests = iter([fuzzer.request() for _ in range(COUNT)])
    answers: list[bytes] = []

    async def attacker(number: int) -> None:
        for request in requests:
            answers.append((await send(port, request, reset=number % 4 == 0))[:12])

    await asyncio.gather(*(attacker(number) for number in range(_AT_ONCE)))
    return answers


async def use(mission: Mission) -> int:
    """Use the bridge until cancelled; how often it served."""
    served = 0
    try:
        while True:
            assert (await mission.call("move")).outcome is Outcome.COMPLETED
            assert await mission.gateway.skills()
            served += 1
    except asyncio.CancelledError:
        return served


def test_connections_that_ask_for_nothing_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "IDLE_BOUND_S", 1.0)
    with served() as bridge:
        streams = bridge.stream()
        beginnings = (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET")
        slow = [socket.create_connection(("127.0.0.1", bridge.port), timeout=10) for _ in beginnings]
        for connection, beginning in zip(slow, beginnings, strict=True):
            connection.sendall(beginning)
        for connection in slow:
            with contextlib.suppress(ConnectionResetError), connection:
                while connection.recv(65536):
                    pass
        monkeypatch.setattr(idle, "IDLE_BOUND_S", 60.0)
        bridge.call("at_once", value=1)
        assert streams.event()[0] == 1, "a stream that waits for events is not idle"


def test_who_breaks_http_in_its_own_request_leaves_a_line(caplog: pytest.LogCaptureFixture) -> None:
    head = b"POST /calls HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served() as bridge:
        with socket.create_connection(("127.0.0.1", bridge.port), timeout=10) as connection:
            connection.sendall(head + b"no length\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 400")
        bridge.call("at_once", value=1)
    (reported,) = (record for record in caplog.records if record.name == "uvicorn.error")
    assert (reported.getMessage(), reported.levelname) == ("Invalid HTTP request received.", "WARNING")
    assert reported.exc_info is None


@pytest.mark.feature("A5")
def test_hostile_requests(bus_url: str, free_port: int, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(bus_url, free_port, tmp_path, SERVED) as mission, contextlib.AsyncExitStack() as stack:
            assert (await mission.call("move")).outcome is Outcome.COMPLETED
            await send(free_port, b"GET /skills HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", reset=False)
            watch = Watch(mission, tmp_path / "logs")
            for _ in range(_STALLED):  # slow readers of nothing, slow writers of headers
                _, writer = await asyncio.open_connection("127.0.0.1", free_port)
                stack.callback(writer.close)
                writer.write(b"POST /calls HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
            using = asyncio.create_task(use(mission))
            answers = await attack(free_port)
            using.cancel()
            served = await using
            kinds = {answer: answers.count(answer) for answer in sorted(set(answers))}
            _logger.info("%d requests in %.1f s, %d good ones; %s; %s", COUNT, watch.seconds(), served, watch, kinds)
            watch.check()
            assert served >= 3
            assert not any(answer.startswith(b"HTTP/1.1 5") for answer in answers)
            assert (await mission.call("move")).outcome is Outcome.COMPLETED

    asyncio.run(main())
