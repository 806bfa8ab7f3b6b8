"""A model's server that sends without end, or packed: what is read of it is bounded, and so is its memory."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import gzip
import itertools
import json
import random
import tracemalloc
from collections.abc import Iterable

import pytest

from dimos_streams.agent.models import answer_body, create_model, guarded
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import Finish, ModelDelta, ModelError, ModelRequest, TextDelta, UserMessage
from dimos_streams.client.iterators import closing
from tests.agent.models.raw_server import RawServer, raw_server

JSON, STREAM = "200 OK\r\nContent-Type: application/json", "200 OK\r\nContent-Type: text/event-stream"
ENDLESS = b"A" * 65536
IN_SOCKETS = 16 * 2**20
"""More than the kernel keeps of a connection on loopback."""


async def heard(server: RawServer) -> list[ModelDelta]:
    model = create_model("openai:m", base_url=server.url)
    guard = guarded(model, name="m", options=ModelOptions(first_wait_s=0.01), rng=random.Random(1))
    try:
        async with closing(guard.stream(ModelRequest((UserMessage("hello"),)))) as stream:
            return [delta async for delta in stream]
    finally:
        await guard.close()


def refused(head: str, body: Iterable[bytes] = ()) -> tuple[ModelError, RawServer, int]:
    """The error that an answer ends in, its server, and the most memory that it took, in bytes."""

    async def main() -> tuple[ModelError, RawServer, int]:
        async with raw_server(head, body) as server:
            tracemalloc.start()
            try:
                with pytest.raises(ModelError) as caught:
                    await heard(server)
                return caught.value, server, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    return asyncio.run(main())


@pytest.mark.slow
@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    ("head", "beginning", "more", "bound", "words"),
    [
        (JSON, b'{"choices": "', ENDLESS, answer_body.MAX_EVENT, "more than 1048576 bytes at once"),
        (STREAM, b"data: ", ENDLESS, answer_body.MAX_EVENT, "more than 1048576 bytes without the end of an event"),
        (STREAM, b"", b"data: xy\n" * 5000, answer_body.MAX_EVENT, "more than 1048576 bytes without the end of"),
        (STREAM, b"", b": %b\n\n" % ENDLESS, answer_body.MAX_STREAM, "sent a stream of more than 67108864 bytes"),
        ("401 Unauthorized", b"", ENDLESS, answer_body.MAX_ERROR, "HTTP 401 (65536 bytes of it were read): AAAA"),
    ],
    ids=["at once", "line", "event", "stream", "error"],
)
def test_of_an_endless_answer_a_bounded_part_is_read(
    head: str, beginning: bytes, more: bytes, bound: int, words: str
) -> None:
    error, server, most = refused(head, itertools.chain([beginning], itertools.repeat(more)))
    assert words in str(error)
    assert str(error).startswith(f"model 'm' at {server.url}")
    assert len(server.requests) == 1
    assert server.taken < bound + IN_SOCKETS
    assert most < 20 * 2**20


@pytest.mark.parametrize(("status", "asked"), [("200 OK", 1), ("401 Unauthorized", 1), ("503 Busy", 5)])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
def test_an_answer_that_is_packed_is_not_unpacked(status: str, asked: int, encoding: str) -> None:
    body = gzip.compress(b": ping\n\n" * 1000)
    error, server, _ = refused(f"{status}\r\nContent-Type: text/event-stream\r\nContent-Encoding: {encoding}", [body])
    assert f"answers with the encoding {encoding!r}" in str(error)
    assert len(server.requests) == asked
    assert b"accept-encoding: identity\r\n" in server.requests[0].lower()


def test_an_answer_that_names_the_plain_encoding_is_read() -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})

    async def main() -> None:
        async with raw_server(f"{STREAM}\r\nContent-Encoding: Identity", [f"data: {chunk}\n\n".encode()]) as server:
            assert TextDelta("hi") in await heard(server)

    asyncio.run(main())


@pytest.mark.parametrize(("head", "form"), [(STREAM, "data: %b\n\n"), (JSON, "%b")], ids=["stream", "at once"])
def test_a_byte_order_mark_before_an_answer_is_skipped(head: str, form: str) -> None:
    choice = {"index": 0, "finish_reason": "stop"}
    said = {"message": {"role": "assistant", "content": "hi"}} if head == JSON else {"delta": {"content": "hi"}}
    body = codecs.BOM_UTF8 + form.encode() % json.dumps({"choices": [choice | said]}).encode()

    async def main() -> None:
        async with raw_server(head, [body]) as server:
            assert TextDelta("hi") in await heard(server)

    asyncio.run(main())


@pytest.mark.parametrize(("head", "form"), [(STREAM, "data: %b\n\n"), (JSON, "%b")], ids=["stream", "at once"])
def test_a_byte_that_is_no_utf_8_costs_that_character_and_not_the_answer(head: str, form: str) -> None:
    choice = {"index": 0, "finish_reason": "stop"}
    said = (
        {"message": {"role": "assistant", "content": "a?b \u20ac"}}
        if head == JSON
        else {"delta": {"content": "a?b \u20ac"}}
    )
    body = json.dumps({"choices": [choice | said]}, ensure_ascii=False).encode().replace(b"?", b"\xe9")

    async def main() -> None:
        whole = form.encode() % body
        async with raw_server(head, [bytes([byte]) for byte in whole]) as server:
            assert TextDelta("a\ufffdb \u20ac") in await heard(server)
            assert len(server.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("silent", ["", ": ping", "id: 8", "event: ping", "retry: 3000", "event: ping\ndata:"])
@pytest.mark.parametrize("field", ["", "id: 7\n"], ids=["plain", "with ids"])
def test_a_block_without_data_is_no_chunk(field: str, silent: str) -> None:
    chunks = [{"choices": [{"delta": {"content": "hi"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    body = [f"{silent}\n\n", *(f"{field}data: {json.dumps(chunk)}\n\n{silent}\n\n" for chunk in chunks)]

    async def main() -> None:
        async with raw_server(STREAM, [piece.encode() for piece in body]) as server:
            deltas = await heard(server)
            assert deltas[0] == TextDelta("hi")
            assert deltas[-1] == Finish("stop")
            assert len(server.requests) == 1

    asyncio.run(main())


def test_the_beginning_of_a_long_error_teaches_how_to_ask() -> None:
    """Servers send back what they refuse, pictures and all."""
    error, server, _ = refused("422 Bad", [b'{"message": "no stream_options", "input": "', b"A" * 200_000, b'"}'])
    assert "no stream_options" in str(error)
    assert [b"stream_options" in request for request in server.requests[:2]] == [True, False]
    assert error.status == 422


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "least"),
    [
        (b"data: {}\n\n" * 10_000, 100_000 / answer_body.SLICE),
        (b'data: {"choices": [{"delta": {"tool_calls": [' + b"{}," * 20_000 + b"{}]}}]}\n\n", 20_000 / 100),
    ],
    ids=["events", "pieces of calls in one event"],
)
def test_others_have_their_turn_while_much_is_read(body: bytes, least: float) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def main() -> None:
        other = asyncio.ensure_future(others())
        async with raw_server(STREAM, [body]) as server:
            with contextlib.suppress(ModelError):
                await heard(server)
        other.cancel()

    asyncio.run(main())
    assert turns > least


@pytest.mark.feature("D7")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/elsewhere"])
def test_a_redirection_is_not_followed_and_says_where_it_leads(status: int, path: str) -> None:
    async def main() -> None:
        async with raw_server("200 OK") as other:
            place = f"http://127.0.0.1:{other.port}{path}"
            async with raw_server(f"{status} Away\r\nLocation: {place}", [ENDLESS]) as server:
                with pytest.raises(ModelError) as caught:
                    await heard(server)
            meant = place.removesuffix("/chat/completions")
            assert str(caught.value) == (
                f"model 'm' at {server.url} points to {place!r} (HTTP {status}), where nothing is sent; "
                f"if that is meant, set base_url to {meant!r}"
            )
            assert (len(server.requests), other.requests) == (1, [])

    asyncio.run(main())
