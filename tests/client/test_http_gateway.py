"""What a gateway over HTTP is given, when it is wrong: named before anything is sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dimos_streams.client.bridge_requests import BridgeRequests
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.errors import NoAnswerError, SkillArgumentError, SkillError, UserError
from tests.helpers import no_threads, until


@pytest.mark.virtual_time
@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"deep": {1, 2}}, 1j], ids=repr)
async def test_an_argument_without_a_form_in_json_is_named(value: Any) -> None:
    gateway = HttpGateway("http://127.0.0.1:1", rng=random.Random(1))
    for begin in (gateway.call, gateway.begin, gateway.call_to_close):
        with pytest.raises(SkillArgumentError) as error:
            await begin("go_to", {"x": 1.0, "y": value}, caller="test")
        assert list(error.value.problems) == ["y"]
        assert str(error.value) == (
            "skill 'go_to' cannot take these arguments: y: it must have a form in JSON, texts, finite numbers, true, "
            f"false, null, lists and objects (given: {value!r})"
        )


@pytest.mark.parametrize("url", ["127.0.0.1:7780", "ftp://robot", "http://", "http://a:b", "http://a:0", ""])
def test_a_url_that_no_server_has_is_named(url: str) -> None:
    with pytest.raises(UserError) as error:
        HttpGateway(url, rng=random.Random(1))
    said = "it must be a server's address, 'http://HOST[:PORT][/PATH]' or 'https://…'"
    assert str(error.value) == f"bad bridge URL {url!r}: {said}"


@pytest.mark.parametrize("host", ["robot..local", ".local", f"{'a' * 64}.local"])
def test_a_host_that_no_look_up_takes_is_no_bridges(host: str) -> None:
    with pytest.raises(UserError, match=rf"bad bridge URL 'http://{host}': .*; no host has such a name: .*label "):
        HttpGateway(f"http://{host}", rng=random.Random(1))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://robot/?token=hidden-one", "http://robot/?token=[redacted]"),
        ("http://robot:7780?hidden-one", "http://robot:7780?[redacted]"),
        ("http://robot/#hidden-one", "http://robot/#[redacted]"),
        ("http://robot/?a=#hidden-one", "http://robot/?a=[redacted]"),
        ("http://bob#hidden-one@robot", "http://[redacted]@robot"),
    ],
)
def test_a_url_with_more_than_an_address_is_refused_and_not_shown_whole(url: str, shown: str) -> None:
    with pytest.raises(UserError) as error:
        HttpGateway(url, rng=random.Random(1))
    assert str(error.value).startswith(f"bad bridge URL {shown!r}: it must be a server's address, ")
    assert str(error.value).endswith(", without anything behind '?' or '#'; a token has a place of its own")


def test_a_host_that_can_have_no_address_is_one_where_nobody_answers() -> None:
    with pytest.raises(NoAnswerError, match=r"the bridge at http://a\.\.b can't be reached: .*label empty"):
        BridgeRequests("http://a..b", token=None, timeout_s=1.0, tls=None).send("GET", "/skills")


def answered(answer: bytes, ask: Callable[[BridgeRequests], Coroutine[Any, Any, object]]) -> list[bytes]:
    """The first lines of what a server is asked that gives one answer to everything."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(answer + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await ask(BridgeRequests(url, token="secret", timeout_s=5.0, tls=None))

    asyncio.run(scenario())
    return asked


def test_what_is_sent_to_a_bridge_follows_nobody_elsewhere() -> None:
    with pytest.raises(SkillError, match="is not a bridge: HTTP 307 Elsewhere"):
        answered(b"HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\n", lambda bridge: bridge.get("/skills"))


@pytest.mark.parametrize(("status", "may_have_arrived"), [("502 Bad Gateway", True), ("503 Busy", False)])
def test_what_a_proxy_says_in_a_bridges_place_leaves_open_whether_an_order_arrived(
    status: str, may_have_arrived: bool
) -> None:
    async def post(bridge: BridgeRequests) -> None:
        response = await bridge.post("/calls", {})
        assert not may_have_arrived, response

    if may_have_arrived:
        with pytest.raises(NoAnswerError, match="502 Bad Gateway") as error:
            answered(f"HTTP/1.1 {status}\r\n".encode(), post)
        assert error.value.may_have_arrived
    else:
        assert answered(f"HTTP/1.1 {status}\r\n".encode(), post) == [b"POST /calls HTTP/1.1\r\n"]


def test_a_gateway_that_is_closed_cuts_what_is_under_way_and_sends_nothing_more() -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        await reader.read()  # until the other side has gone
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            requests = BridgeRequests(url, token=None, timeout_s=60.0, tls=None)
            asking = asyncio.create_task(requests.get("/skills"))
            await until(lambda: asked)
            requests.close()
            async with asyncio.timeout(10.0):
                with pytest.raises(NoAnswerError):
                    await asking
                with pytest.raises(NoAnswerError, match="the gateway is closed"):
                    await requests.get("/calls")

    asyncio.run(scenario())
    assert asked == [b"GET /skills HTTP/1.1\r\n"]


def test_a_bridge_that_no_thread_can_ask_does_not_answer() -> None:
    async def scenario() -> None:
        gateway = HttpGateway("http://127.0.0.1:1", rng=random.Random(1))
        for asked in (gateway.skills(), gateway.calls(), gateway.cancel("a", "b")):
            with no_threads(), pytest.raises(NoAnswerError, match=r"can't be asked: .* no more threads") as error:
                await asked
            assert not error.value.may_have_arrived

    asyncio.run(scenario())


def test_nothing_is_asked_that_no_thread_can_cut() -> None:
    requests = BridgeRequests("http://127.0.0.1:1", token=None, timeout_s=1.0, tls=None)
    with no_threads(), pytest.raises(NoAnswerError, match="no more threads") as error:
        requests.send("GET", "/skills")
    assert not error.value.may_have_arrived
