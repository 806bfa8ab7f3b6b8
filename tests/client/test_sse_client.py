"""The client against real sockets: cuts, refusals, silence, back-pressure, and stops at every moment."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from dimos_streams.client.backoff import Backoff
from dimos_streams.client.event_stream.sse_parser import SseEvent
from dimos_streams.client.sse_client import SseClient, SseError
from tests.client.event_server import HEAD, EventServer, Peer, event_server
from tests.helpers import wait_for

BOUND_S = 30.0
"""What takes longer hangs."""


def client_of(server: EventServer, **options: Any) -> SseClient:
    defaults: dict[str, Any] = {"first_wait_s": 0.01, "longest_wait_s": 0.05, "rng": random.Random(1)}
    options = defaults | options
    return SseClient(server.url, **options)


@contextlib.contextmanager
def reading(client: SseClient) -> Iterator[Queue[SseEvent | Exception | None]]:
    """The items that the client hands over and, last, how it ended."""
    arrived: Queue[SseEvent | Exception | None] = Queue()
    client.start(arrived.put, arrived.put)
    try:
        yield arrived
    finally:
        assert client.stop(1.0)


def data_of(arrived: Queue[SseEvent | Exception | None], count: int) -> list[str]:
    events = [arrived.get(timeout=BOUND_S) for _ in range(count)]
    return [event.data for event in events if isinstance(event, SseEvent)]


def numbered(number: int) -> bytes:
    return b"id: %d\ndata: %d\n\n" % (number, number)


def test_resumes_after_each_cut_without_loss_or_repetition() -> None:
    rng = random.Random(3)

    def play(peer: Peer) -> None:
        first = int(peer.headers.get("last-event-id", 0)) + 1
        stream = b"".join(map(numbered, range(first, 101)))
        peer.send(HEAD)
        # Each connection ends in the middle of something, the chunk included.
        end = rng.randrange(1, 200)
        for cut in range(0, end, 7):
            peer.chunk(stream[cut : min(cut + 7, end)])
        if end < len(stream):
            peer.send(b"5\r\nda")

    with event_server(play) as server, reading(client_of(server)) as arrived:
        assert data_of(arrived, 100) == [str(number) for number in range(1, 101)]
        assert len(server.requests) > 5


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_an_id_without_an_event_is_where_it_resumes(on_a_loop: bool) -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        asked = int(peer.headers.get("last-event-id", 5))
        if asked == 9:
            peer.chunk(numbered(10))
            peer.hang_up_noticed()
        # At the beginning of a stream and, later, with a ping; what is cut off before its blank line does not count.
        peer.chunk(b"retry: 10\nid: %d\n\n: ping\nid: %d\n\n: ping\nid: 99\n" % (asked + 1, asked + 2))

    async def first(client: SseClient) -> str:
        async with contextlib.aclosing(client.events()) as events:
            return (await anext(events)).data

    with event_server(play) as server:
        client = client_of(server)
        if on_a_loop:
            assert asyncio.run(asyncio.wait_for(first(client), BOUND_S)) == "10"
        else:
            with reading(client) as arrived:
                assert data_of(arrived, 1) == ["10"]
        assert [peer.headers.get("last-event-id") for peer in server.requests] == [None, "7", "9"]


@pytest.mark.parametrize("on_a_loop", [False, True])
@pytest.mark.parametrize(
    ("id", "sent"),
    [("  5", "5"), ("\t5 ", "5"), ("ü", "ü"), ("\N{GRINNING FACE}", "\N{GRINNING FACE}"), ("\x0b", None)],
)
def test_it_resumes_whatever_the_id_is(on_a_loop: bool, id: str, sent: str | None) -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(b"retry: 10\nid: %b\ndata: %d\n\n" % (id.encode(), len(server.requests)))

    async def first_two(client: SseClient) -> list[str]:
        async with contextlib.aclosing(client.events()) as events:
            return [(await anext(events)).data, (await anext(events)).data]

    with event_server(play) as server:
        client = client_of(server)
        if on_a_loop:
            assert asyncio.run(asyncio.wait_for(first_two(client), BOUND_S)) == ["1", "2"]
        else:
            with reading(client) as arrived:
                assert data_of(arrived, 2) == ["1", "2"]
        asked = server.requests[1].headers.get("last-event-id")
        assert asked == sent


@pytest.mark.parametrize("alone", [False, True])
def test_bytes_are_those_of_the_events_however_they_come(alone: bool) -> None:
    events = [b"event: tool\nid: %d\ndata: x\n\n" % number for number in range(1, 6)]
    taken = threading.Semaphore(0)

    def play(peer: Peer) -> None:
        peer.send(HEAD)
        for part in events if alone else [b"".join(events)]:
            peer.chunk(part)
            taken.acquire(timeout=BOUND_S if alone else 0)
        peer.hang_up_noticed()

    async def all_of(client: SseClient) -> None:
        async with contextlib.aclosing(client.events()) as found:
            for _ in events:
                await anext(found)
                taken.release()

    with event_server(play) as server:
        client = client_of(server)
        asyncio.run(asyncio.wait_for(all_of(client), BOUND_S))
    assert client.statistics().bytes == len(b"".join(events))


def test_headers_and_statistics() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(b"retry: 20\r\ndata: x\r")
        peer.chunk(b"\n\r\n: ping\n\n")
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server, headers={"Authorization": "Bearer t"}, last_event_id="41")
        with reading(client) as arrived:
            assert data_of(arrived, 1) == ["x"]
        headers = server.requests[0].headers
        assert headers["authorization"] == "Bearer t"
        assert headers["last-event-id"] == "41"
        assert headers["accept-encoding"] == "identity"
    statistics = client.statistics()
    assert (statistics.connections, statistics.failures, statistics.events) == (1, 0, 1)
    assert client.error is None


@pytest.mark.parametrize(
    ("status", "content_type", "words"),
    [
        ("401 Unauthorized", "text/plain", "HTTP 401 Unauthorized: who are you"),
        ("403 Forbidden", "text/plain", "HTTP 403"),
        ("404 Not Found", "text/plain", "HTTP 404"),
        ("307 Temporary Redirect", "text/plain", "points to 'http://127.0.0.1:1/' (HTTP 307)"),
        ("200 OK", "text/event-stream\r\nContent-Encoding: gzip", "it answers with the encoding 'gzip'"),
        ("200 OK", "text/html", "the content type is 'text/html', not 'text/event-stream'"),
    ],
)
def test_a_final_answer_is_an_error_that_names_it(status: str, content_type: str, words: str) -> None:
    def play(peer: Peer) -> None:
        peer.answer(status, b"who are you", f"Content-Type: {content_type}\r\nLocation: http://127.0.0.1:1/\r\n")

    with event_server(play) as server:
        with reading(client_of(server)) as arrived:
            error = arrived.get(timeout=BOUND_S)
        assert isinstance(error, SseError)
        assert words in str(error)
        assert server.url in str(error)
        assert len(server.requests) == 1


def test_the_log_has_a_final_error_that_nobody_is_called_with(caplog: pytest.LogCaptureFixture) -> None:
    with event_server(lambda peer: peer.answer("404 Not Found", b"no such path", "")) as server:
        client = client_of(server)
        client.start(lambda event: None)
        wait_for(lambda: client.error is not None)
        assert client.stop(1.0)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert f"no events from {server.url}: HTTP 404 Not Found: no such path; it is read no more" in record.getMessage()


def test_tries_again_after_passing_errors() -> None:
    attempts = itertools.count()

    def play(peer: Peer) -> None:
        attempt = next(attempts)
        if attempt < 2:
            peer.answer(["503 Service Unavailable", "429 Too Many Requests"][attempt], headers="Retry-After: 0\r\n")
        elif attempt == 2:
            peer.send(b"not HTTP at all\r\n\r\n")
        else:
            peer.send(HEAD)
            peer.chunk(numbered(1))
            peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server)
        with reading(client) as arrived:
            assert data_of(arrived, 1) == ["1"]
        assert client.statistics().failures == 3


def test_a_silent_connection_is_dead() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(numbered(int(peer.headers.get("last-event-id", 0)) + 1))
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server, ping_s=0.04)
        with reading(client) as arrived:
            assert data_of(arrived, 2) == ["1", "2"]
        assert "timed out" in client.statistics().last_failure


def test_skips_large_events_and_lives() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(b"data: " + b"x" * 5000 + b"\n\n" + numbered(2))
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server, max_event_bytes=1000)
        with reading(client) as arrived:
            assert data_of(arrived, 1) == ["2"]
        assert client.statistics().malformed == 1
        assert client.statistics().connections == 1


def test_a_large_event_counts_once_whatever_comes_behind_it() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(b"data: " + b"x" * 5000 + b"\n\n")
        wait_for(lambda: client.statistics().malformed)
        peer.chunk(numbered(2))
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server, max_event_bytes=1000)
        with reading(client) as arrived:
            assert data_of(arrived, 1) == ["2"]
        assert client.statistics().malformed == 1


def test_a_failing_callback_does_not_end_the_client(caplog: pytest.LogCaptureFixture) -> None:
    seen: Queue[str] = Queue()

    def on_event(event: SseEvent) -> None:
        seen.put(event.data)
        raise ValueError("the test's own")

    def play(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(numbered(1) + numbered(2))
        peer.hang_up_noticed()

    with event_server(play) as server:
        client = client_of(server)
        client.start(on_event)
        assert [seen.get(timeout=BOUND_S), seen.get(timeout=BOUND_S)] == ["1", "2"]
        assert client.stop(1.0)
    assert "the callback failed" in caplog.text


def test_the_reader_waits_for_a_slow_loop() -> None:
    size = 2000

    def play(peer: Peer) -> None:
        peer.send(HEAD)
        for number in range(1, size + 1):
            peer.chunk(numbered(number))
        peer.hang_up_noticed()

    async def main(server: EventServer) -> None:
        client = client_of(server)
        got = []
        async with contextlib.aclosing(client.events(capacity=10)) as events:
            async for event in events:
                got.append(int(event.data))
                handed_over = int(client.last_event_id or 0)
                assert handed_over - len(got) <= 21  # the capacity, one batch, and the one in hand
                if len(got) == size:
                    break
                if len(got) % 100 == 0:
                    await asyncio.sleep(0)
        assert got == list(range(1, size + 1))

    with event_server(play) as server:
        asyncio.run(main(server))


def test_the_iterator_raises_the_final_error() -> None:
    async def main(server: EventServer) -> None:
        async for _ in client_of(server).events():
            pass

    with event_server(lambda peer: peer.answer("401 Unauthorized")) as server, pytest.raises(SseError, match="401"):
        asyncio.run(main(server))


def test_cancelling_a_full_iterator_leaves_nothing() -> None:
    def play(peer: Peer) -> None:
        peer.send(HEAD)
        while not peer.gone.is_set():
            peer.chunk(numbered(1))

    async def main(server: EventServer) -> None:
        started = asyncio.Event()

        async def consume() -> None:
            async for _ in client_of(server).events(capacity=1):
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(consume())
        await started.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    with event_server(play) as server:
        asyncio.run(main(server))
    assert not client_threads()


def test_nobody_waits_for_the_look_up_of_a_host_that_cannot_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = threading.Event(), threading.Event()

    def look_up(*_: Any, **__: Any) -> Any:
        asked.set()
        answered.wait()
        raise OSError("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def main() -> float:
        client = SseClient("http://robot.example:1/events", rng=random.Random(1))
        reading = asyncio.ensure_future(anext(client.events()))
        await asyncio.to_thread(asked.wait)
        begin = time.monotonic()
        reading.cancel()
        await asyncio.wait([reading])
        return time.monotonic() - begin

    try:
        assert asyncio.run(main()) < 5.0, "it waits a bounded time"
    finally:
        answered.set()
    wait_for(lambda: not client_threads())


def test_starting_twice_is_an_error_and_stopping_twice_is_not() -> None:
    with event_server(lambda peer: peer.send(HEAD)) as server:
        client = client_of(server)
        assert client.stop()
        client = client_of(server)
        client.start(print)
        with pytest.raises(RuntimeError, match="started before"):
            client.start(print)
        assert client.stop(1)
        assert client.stop(1)


@pytest.mark.live
def test_stops_while_a_connection_is_never_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as fillers:
        address = listener.getsockname()
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        wait_for(lambda: connecting_to(address[1]) > 0)
        before = connecting_to(address[1])
        client = SseClient(f"http://127.0.0.1:{address[1]}/", rng=random.Random(1))
        client.start(print)
        wait_for(lambda: connecting_to(address[1]) > before)
        begin = time.monotonic()
        assert client.stop(0.5)
        assert time.monotonic() - begin < 0.5


@pytest.mark.feature("A6")
@pytest.mark.live
def test_500_cycles_of_start_and_stop_at_random_moments() -> None:
    rng = random.Random(11)
    plays = itertools.cycle([chatter, refuse, hold_the_answer, one_event_then_cut, silence])

    def play(peer: Peer) -> None:
        next(plays)(peer)

    gc.collect()
    with event_server(play) as server:
        descriptors = len(os.listdir("/proc/self/fd"))
        slowest = 0.0
        stopped: list[tuple[list[SseEvent], int]] = []
        for _ in range(500):
            arrived: list[SseEvent] = []
            client = client_of(server, rng=rng)
            client.start(arrived.append)
            pause(rng.choice([0.0, 0.0, 0.0002, 0.001, 0.003, 0.01]) * rng.random())
            begin = time.monotonic()
            assert client.stop(2.0)
            slowest = max(slowest, time.monotonic() - begin)
            stopped.append((arrived, len(arrived)))
        assert all(len(arrived) == count for arrived, count in stopped)
        assert any(count for _, count in stopped)
        assert slowest <= 0.5
        assert not client_threads()
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


@pytest.mark.live
def test_100_iterations_cancelled_at_random_moments_leave_nothing() -> None:
    rng = random.Random(13)
    plays = itertools.cycle([chatter, refuse, hold_the_answer, silence])

    async def consume(server: EventServer) -> None:
        async with contextlib.aclosing(client_of(server, rng=rng).events(capacity=2)) as events:
            async for _ in events:
                await asyncio.sleep(0)

    async def main(server: EventServer) -> None:
        for _ in range(100):
            task = asyncio.create_task(consume(server))
            await asyncio.sleep(rng.choice([0.0, 0.001, 0.01]) * rng.random())
            task.cancel()
            async with asyncio.timeout(0.5):
                await asyncio.wait([task])
        assert len(asyncio.all_tasks()) == 1

    with event_server(lambda peer: next(plays)(peer)) as server:
        asyncio.run(main(server))
    assert not client_threads()


def chatter(peer: Peer) -> None:
    peer.send(HEAD)
    while not peer.gone.is_set():
        peer.chunk(numbered(1))


def refuse(peer: Peer) -> None:
    peer.answer("503 Service Unavailable")


def hold_the_answer(peer: Peer) -> None:
    peer.hang_up_noticed()


def one_event_then_cut(peer: Peer) -> None:
    peer.send(HEAD)
    peer.chunk(numbered(1))


def silence(peer: Peer) -> None:
    peer.send(HEAD)
    peer.hang_up_noticed()


def pause(seconds: float) -> None:
    """Let the client get somewhere; where is up to chance, which is the point."""
    threading.Event().wait(seconds)


def client_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("sse ")]


def connecting_to(port: int) -> int:
    """Sockets of this machine that wait for an answer to their SYN from a local port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in lines if line.split()[3] == "02" and line.split()[2].endswith(f":{port:04X}"))


def test_a_server_that_greets_and_ends_each_connection_is_not_asked_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SseClient("http://127.0.0.1:1/", rng=random.Random(1))
    pauses: list[float] = []
    monkeypatch.setattr(client._stopping, "wait", pauses.append)

    def pause_after(piece: bytes, age_s: float = -BOUND_S) -> float:  # however slow the machine is
        def read(*_: object) -> None:
            client._connected_at = time.monotonic() + BOUND_S
            client._parsed(client._parser(), piece)
            client._connected_at = time.monotonic() - age_s

        client._backoff.reset()
        for _ in range(3):
            client._backoff.next()
        monkeypatch.setattr(client, "_read_connection", read)
        client._connect_once(lambda events: None)
        return pauses[-1]

    for greeting in (b": hello\n\n", b"retry: 100\n\n", b"data: hello\n\n"):
        assert 0.8 <= pause_after(greeting) < 1.2
    assert 0.1 <= pause_after(b"id: 1\n\n") < 0.15, "it leads on"
    assert 0.1 <= pause_after(b": hello\n\n", age_s=1.0) < 0.15, "it has lasted, though nothing more came"


def test_what_a_server_asks_all_of_its_clients_to_wait_brings_them_back_one_by_one() -> None:
    waits = [Backoff(random.Random(seed)).next(5.0) for seed in range(20)]
    assert 5.0 <= min(waits) < max(waits) < 7.5
    assert len(set(waits)) == 20
