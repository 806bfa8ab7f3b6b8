"""Events for a loop: the loop reads the connection itself, cut as it may be, and a thread only connects."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import socket
from collections.abc import Callable
from typing import Any

import pytest

from dimos_streams.client.event_stream.chunked import ChunkedDecoder
from dimos_streams.client.event_stream.loop_reader import LoopReader
from dimos_streams.client.sse_client import SseClient
from tests.client.event_server import HEAD, Peer, event_server
from tests.client.test_sse_client import client_of, numbered
from tests.helpers import no_threads

PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


async def first_of(client: SseClient, count: int) -> list[str]:
    async with contextlib.aclosing(client.events()) as events:
        found = []
        async with asyncio.timeout(10):
            async for event in events:
                found.append(event.data)
                if len(found) == count:
                    break
    return found


def read(play: Callable[[Peer], None], count: int, **options: float) -> tuple[list[str], SseClient]:
    with event_server(play) as server:
        client = client_of(server, **options)
        return asyncio.run(first_of(client, count)), client


def test_no_thread_reads_what_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD + b"%x\r\n%b\r\n" % (len(numbered(1)), numbered(1)))  # in one piece with the head
        peer.chunk(numbered(2))
        peer.hang_up_noticed()

    monkeypatch.setattr(SseClient, "_read", None)
    found, client = read(play, 2)
    assert found == ["1", "2"]
    assert client.statistics().failures == 0


def test_one_that_never_began_is_stopped_though_its_connection_is_closed() -> None:
    """Its thread has seen in time that it is not wanted, and has closed the connection."""
    taken: list[bytes] = []
    troubles: list[dict[str, Any]] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, trouble: troubles.append(trouble))
        one, other = socket.socketpair()
        reader = LoopReader(loop, one, take, 1.0)
        one.close()
        other.close()
        reader.stop()
        reader.stop()
        await asyncio.to_thread(reader.run, b"what was read before")  # it returns, and raises nothing

    asyncio.run(scenario())
    assert (taken, troubles) == ([], [])


def test_a_body_without_chunks_is_read_as_well() -> None:
    def play(peer: Peer) -> None:
        peer.send(PLAIN_HEAD + numbered(1))
        peer.send(numbered(2))
        peer.hang_up_noticed()

    assert read(play, 2)[0] == ["1", "2"]


@pytest.mark.parametrize("bad", [b"xyz\r\n", b"-5\r\n", b"5_0\r\n", b"3\r\nabcde\r\n", b"\r\n", b"1" * 5000])
def test_after_bytes_that_are_no_chunk_it_connects_again_and_resumes(bad: bytes) -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(numbered(int(peer.headers.get("last-event-id", 0)) + 1))
        peer.send(bad)
        peer.hang_up_noticed()

    found, client = read(play, 3)
    assert found == ["1", "2", "3"]
    assert client.statistics().failures in (2, 3), "none that brought nothing"


def test_a_connection_that_says_nothing_is_dead() -> None:
    failures: list[str] = []

    def play(peer: Peer) -> None:
        last = int(peer.headers.get("last-event-id", 0))
        if last:
            failures.append(client.statistics().last_failure)
        peer.send(HEAD)
        peer.chunk(numbered(last + 1))
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server, ping_s=0.04)
        assert asyncio.run(first_of(client, 2)) == ["1", "2"]
    assert "nothing came for 0.1 s" in failures[0], "a later connection may have been answered too late"


def test_the_last_chunk_ends_the_connection() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(numbered(int(peer.headers.get("last-event-id", 0)) + 1))
        peer.send(b"0\r\n\r\n")
        peer.hang_up_noticed()

    found, client = read(play, 3)
    assert found == ["1", "2", "3"]
    assert client.statistics().last_failure == "the server ended the stream"


def test_a_body_is_the_same_however_its_chunks_are_cut() -> None:
    rng = random.Random(5)
    body = b"".join(map(numbered, range(1, 60)))
    cuts = [0, *sorted(rng.sample(range(1, len(body)), 20)), len(body)]
    chunks = [body[a:b] for a, b in itertools.pairwise(cuts)]
    coded = b"".join(b"%x;note=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    for size in (1, 2, 3, 7, 100, len(coded)):
        decoder = ChunkedDecoder()
        found = [chunk for at in range(0, len(coded), size) for chunk in decoder.feed(coded[at : at + size])]
        assert b"".join(found) == body
        assert decoder.ended
        if size == len(coded):
            assert found == chunks


def test_a_size_that_never_ends_is_not_kept() -> None:
    decoder = ChunkedDecoder()
    for _ in range(10):
        assert decoder.feed(b"1" * 1000) == []
    assert "does not end" in str(decoder.error)


def test_behind_an_error_no_chunk_is_found() -> None:
    decoder = ChunkedDecoder()
    assert decoder.feed(b"1\r\na\r\nxyz\r\n1\r\nb\r\n") == [b"a"]
    assert decoder.error is not None
    assert decoder.feed(b"1\r\nc\r\n") == []


def test_one_that_gets_no_thread_tries_again() -> None:
    system, said = contextlib.ExitStack(), list[str]()

    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(numbered(1))

    def on_loss(problem: str) -> None:
        said.append(problem)
        system.close()

    with event_server(play) as server, system:
        client = client_of(server, on_loss=on_loss)
        system.enter_context(no_threads())
        assert asyncio.run(first_of(client, 1)) == ["1"]
    assert "no more threads" in said[0]


def test_one_that_gets_no_thread_can_be_stopped() -> None:
    client = SseClient("http://127.0.0.1:1", on_loss=lambda problem: client.request_stop())
    with no_threads():
        assert asyncio.run(first_of(client, 1)) == []
