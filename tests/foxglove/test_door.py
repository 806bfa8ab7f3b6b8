"""The door before the viewers' server: who has left makes room, and nothing gets past it that was not looked at."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from dimos_streams.foxglove.door import viewer_door
from dimos_streams.foxglove.door.admission import AdmissionRules
from tests.foxglove.test_server import ELECTRON, HANDSHAKE, answered, shown
from tests.helpers import until


def test_whoever_has_left_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_door, "MAX_CONNECTIONS", 1)

    async def scenario() -> None:
        async with shown() as show:
            before = len(asyncio.all_tasks())
            reader, writer = await asyncio.open_connection("127.0.0.1", show.port)
            writer.write(f"GET / HTTP/1.1\r\n{HANDSHAKE}\r\n".encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 101")
            assert await answered(show.url, {}) == 503
            writer.close()
            await until(lambda: len(asyncio.all_tasks()) <= before)  # nothing of it is left
            assert await answered(show.url, {}) == 101

    asyncio.run(scenario())


def test_what_comes_with_a_request_and_nobody_has_looked_at_does_not_pass() -> None:
    async def scenario() -> None:
        async with shown() as show:
            reader, writer = await asyncio.open_connection("127.0.0.1", show.port)
            writer.write(f"GET / HTTP/1.1\r\n{HANDSHAKE}\r\n".encode() + b"\x81\x05hello")
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"nothing follows before its answer" in answer
            writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "origin", ["chrome-extension://abcdefgh", "HTTPS://evil.example", "https://evil.example", "null"]
)
def test_no_page_of_the_web_passes_for_an_application(origin: str) -> None:
    headers = {"host": "localhost", "user-agent": ELECTRON}
    refusal = AdmissionRules().refusal("/", {**headers, "origin": origin})
    assert refusal is not None
    assert refusal[0] == 403
    assert AdmissionRules().refusal("/", {**headers, "origin": "file://"}) is None


def test_who_says_nothing_at_the_door_is_let_go_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_door, "_HEAD_WITHIN_S", 0.05)

    async def scenario() -> None:
        async with shown() as show, asyncio.timeout(10.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", show.port)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())
