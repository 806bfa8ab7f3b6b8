"""A fleet hub over HTTP, as a robot reaches it: what an answer means, connections that are kept, and cut."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bridge.config import BridgeConfig
from dimos_streams.bridge.fleet.connection import HubConnection
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.settings import HubLinkSettings, own_name
from dimos_streams.errors import UserError
from dimos_streams.fleet.commands import Command, Hello
from tests.helpers import no_threads, until

pytestmark = pytest.mark.feature("H2")

_POSITION = {"protocol": 1, "version": "1", "journal": "journal-1", "acknowledged": 7, "wait_s": 0.5}


class Answering:
    """A server that answers everything by one function, and notes what was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[], tuple[int, dict[str, str], bytes]] = lambda: (200, {}, _json(_POSITION))
        self.asked: list[tuple[str, str, str]] = []
        self.bodies: list[bytes] = []
        self.clients: list[Any] = []
        self.go_on = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                outer.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
                outer.clients.append(self.client_address)
                outer.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
                status, headers, body = outer.answer()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _answer

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def problem(self, status: int, kind: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        body = {"type": f"urn:dimos-streams:problem:{kind}", "detail": f"this is {kind}", **more}
        self.answer = lambda: (status, headers or {}, _json(body))


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


@pytest.fixture
def server() -> Iterator[Answering]:
    made = Answering()
    made.thread.start()
    yield made
    made.go_on.set()
    made.server.shutdown()
    made.server.server_close()
    made.thread.join()


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test on a real loop: requests go through threads and sockets."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def _read(hub: HubConnection, found: list[object]) -> None:
    async for message in hub.commands():
        found.append(message)


@contextlib.asynccontextmanager
async def connected(url: str, **settings: Any) -> AsyncIterator[HubConnection]:
    connection = HubConnection(HubLinkSettings(url=url, robot="robot1", **settings), rng=random.Random(1))
    try:
        yield connection
    finally:
        connection.close()


@on_a_loop
async def test_requests_have_the_robots_name_and_its_token_and_share_a_connection(
    server: Answering, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-token\n")
    async with connected(server.url, token_file=token) as hub:
        assert (await hub.position("journal-1")).acknowledged == 7
        token.write_text("second-token\n")
        assert (await hub.ship(b"{}")).wait_s == 0.5
    assert server.asked == [
        ("GET", "/fleet/robots/robot1/position?journal=journal-1", "Bearer first-token"),
        ("POST", "/fleet/robots/robot1/batches", "Bearer second-token"),
    ]
    assert len(set(server.clients)) == 1


@on_a_loop
async def test_what_an_answer_means(server: Answering, tmp_path: Path) -> None:
    async with connected(server.url) as hub:
        server.problem(403, "foreign-robot")
        with pytest.raises(HubRefusalError, match="refuses: this is foreign-robot") as refused:
            await hub.position("journal-1")
        assert (refused.value.kind, refused.value.offset) == ("foreign-robot", None)
        server.problem(409, "fleet-position", acknowledged=12)
        with pytest.raises(HubRefusalError) as refused:
            await hub.ship(b"{}")
        assert (refused.value.kind, refused.value.offset) == ("fleet-position", 12)
        server.problem(503, "hub-unavailable", {"Retry-After": "7"})
        with pytest.raises(HubUnreachableError, match="this is hub-unavailable") as away:
            await hub.ship(b"{}")
        assert away.value.retry_after_s == 7.0
        server.answer = lambda: (502, {"Content-Type": "text/html"}, b"<html>")
        with pytest.raises(HubUnreachableError, match="HTTP 502 from what seems to be no hub"):
            await hub.ship(b"{}")
        server.answer = lambda: (200, {}, b"<html>")
        with pytest.raises(HubRefusalError, match="answer is none of a hub"):
            await hub.ship(b"{}")
        server.answer = lambda: (302, {"Location": "http://elsewhere"}, b"")
        with pytest.raises(HubRefusalError, match="HTTP 302"):
            await hub.ship(b"{}")
    async with connected("http://127.0.0.1:9") as nowhere:
        with pytest.raises(HubUnreachableError, match="it can't be reached: Connection refused"):
            await nowhere.position("journal-1")
        with pytest.raises(HubUnreachableError, match=r"^it can't be reached: Connection refused$"):
            await anext(nowhere.commands())
    async with connected(server.url, token_file=tmp_path / "none") as hub:
        with pytest.raises(UserError, match=r"can't be read from .*none: No such file"):
            await hub.position("journal-1")
    os.mkfifo(tmp_path / "pipe")
    async with connected(server.url, token_file=tmp_path / "pipe") as hub:
        for ask in (hub.position("journal-1"), anext(hub.commands())):
            with pytest.raises(UserError, match=r"from .*pipe: it is a device or a pipe, which may have no end$"):
                await ask


@on_a_loop
async def test_a_token_on_a_disk_that_hangs_holds_up_its_link_only(
    server: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answers = list[HubLinkSettings](), threading.Event()

    def read_late(settings: HubLinkSettings) -> str:
        begun.append(settings)
        answers.wait(30)
        return "late-token"

    monkeypatch.setattr(HubLinkSettings, "token", read_late)
    async with connected(server.url, token_file=tmp_path / "token") as hub:
        asking = [asyncio.create_task(each) for each in (hub.position("journal-1"), _read(hub, []))]
        await until(lambda: begun)  # the loop goes on meanwhile
        asking[1].cancel()
        await asyncio.wait(asking[1:])
        asking[1] = asyncio.create_task(_read(hub, []))
        await asyncio.sleep(0.0)
        assert server.asked == []
        answers.set()
        assert (await asking[0]).acknowledged == 7  # type: ignore[union-attr]
        with pytest.raises((HubRefusalError, HubUnreachableError)):
            await asking[1]
    assert {token for _, _, token in server.asked} == {"Bearer late-token"}
    assert len(begun) == 1, "whoever gives up leaves no thread behind"


@on_a_loop
async def test_a_hub_that_hangs_holds_no_bridge_up_that_ends(server: Answering) -> None:
    def hang() -> tuple[int, dict[str, str], bytes]:
        server.go_on.wait(30)
        return 200, {}, b"{}"

    server.answer = hang
    connection = HubConnection(HubLinkSettings(url=server.url, robot="robot1"), rng=random.Random(1))
    asking = asyncio.create_task(connection.position("journal-1"))
    await until(lambda: server.asked)
    began = clock.monotonic()
    connection.close()
    with pytest.raises(HubUnreachableError):
        await asking
    with pytest.raises(HubUnreachableError):
        await connection.position("journal-1")
    connection.close()
    assert clock.monotonic() - began < 10


def _sockets() -> int:
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that listed them, or one of the server's threads
            found += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return found


@on_a_loop
async def test_a_hub_that_closes_each_connection_leaves_no_sockets(server: Answering) -> None:
    server.answer = lambda: (200, {"Connection": "close"}, _json(_POSITION))
    async with connected(server.url) as hub:
        await hub.position("journal-1")
        before = _sockets()
        for _ in range(20):
            await hub.position("journal-1")
        assert len(set(server.clients)) == 21
        await until(lambda: _sockets() <= before)


@on_a_loop
async def test_a_link_that_is_closed_leaves_no_sockets_of_what_it_kept(server: Answering) -> None:
    before = _sockets()
    async with connected(server.url) as hub:
        await hub.position("journal-1")
    await until(lambda: _sockets() <= before)  # fewer, if an earlier test's server is still hanging up


def _command(stream: str) -> Command:
    return Command(
        id=1,
        key="k",
        stream=stream,
        expires_at_s=5,
        asked_by="me",
        role="operator",
        method="POST",
        path="/calls",
        body={"a": 1},
    )


@on_a_loop
async def test_the_stream_of_commands_is_read_once(server: Answering) -> None:
    hello = Hello(version="1", hub="h", robot="robot1")
    sent: list[Command] = []

    def answer() -> tuple[int, dict[str, str], bytes]:
        path, _, query = server.asked[-1][1].partition("?")
        assert path == "/fleet/robots/robot1/commands"
        sent.append(_command(parse_qs(query)["stream"][0]))
        lines = f"event: hello\ndata: {hello.model_dump_json()}\n\n: ping\n\nevent: command\ndata: {{}}\n\n"
        lines += "".join(f"event: command\ndata: {each.model_dump_json()}\n\n" for each in sent)
        return 200, {"Content-Type": "text/event-stream"}, f"{lines}event: news\ndata: 1\n\n".encode()

    server.answer = answer
    found: list[object] = []
    async with connected(server.url) as hub:
        with pytest.raises(HubUnreachableError, match="stream of commands: the server ended the stream"):
            await _read(hub, found)
        assert found == [hello, sent[0]], "what is none is left out"
        assert len(server.asked) == 1
        found.clear()
        with pytest.raises(HubUnreachableError):
            await _read(hub, found)
        assert sent[0].stream != sent[1].stream
        assert found == [hello, sent[1]], "what was sent on another stream is left out"
        server.problem(403, "foreign-robot", title="x" * 1000)
        with pytest.raises(HubRefusalError) as refused:
            await anext(hub.commands())
        assert refused.value.kind == "foreign-robot"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("hub.example.org", "no address of a hub"),
        ("ftp://hub", "no address of a hub"),
        ("https://hub..example.org", "no address of a hub"),
        ("https://me:secret-word@hub", "takes no password"),
        ("https://hub:port", "hub"),
        ({"robot": "r"}, "url"),
        ({"url": "https://hub", "robot": "über/robot"}, "robot"),
        ({"url": "https://hub", "key": "k.pem"}, "key"),
        ({"url": "https://hub", "age_s": 0}, "age_s"),
        ({"url": "https://hub", "tocken_file": "x"}, "tocken_file"),
    ],
)
def test_settings_that_cannot_be(given: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        BridgeConfig.model_validate({"hub": given})


def test_the_url_alone_is_enough() -> None:
    config = BridgeConfig.model_validate({"hub": "https://hub.example.org/"})
    assert config.hub == HubLinkSettings(url="https://hub.example.org", robot=own_name())


@on_a_loop
async def test_a_request_that_waits_for_a_thread_is_not_sent_once_the_link_is_closed(server: Answering) -> None:
    busy = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(busy.wait)
        settings = HubLinkSettings(url=server.url, robot="robot1")
        hub = HubConnection(settings, rng=random.Random(1), threads=threads)
        asking = asyncio.create_task(hub.position("journal-1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        hub.close()
        busy.set()
        with pytest.raises(HubUnreachableError, match="the link is closed"):
            await asking
    assert server.asked == []


def test_a_hub_that_no_thread_can_ask_is_asked_again() -> None:
    async def scenario() -> None:
        settings = HubLinkSettings(url="http://127.0.0.1:1", robot="robot1")
        with no_threads(), contextlib.closing(HubConnection(settings, rng=random.Random(1))) as hub:
            with pytest.raises(HubUnreachableError, match="no more threads"):
                await hub.position("journal-1")
            with pytest.raises(HubUnreachableError, match="no more threads"):
                await anext(hub.commands())

    asyncio.run(scenario())
