"""The pace of an event stream, in virtual time: pings count from the last chunk, cuts from the one under way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.serving.events.stream import EventStream
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event
from tests.helpers import until


class Client:
    """Takes each chunk after a while, and notes when."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.chunks: list[tuple[float, bytes]] = []
        self.cut = False

    async def receive(self) -> dict[str, str]:
        await asyncio.sleep(1e6)
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        # Nothing is sent to wait until all was taken, and here it was.
        if message["type"] == "http.response.body" and message["body"]:
            await asyncio.sleep(self.takes_s)
            self.chunks.append((clock.monotonic(), message["body"]))

    def abort(self, client: object) -> None:
        self.cut = True

    def pings(self) -> list[float]:
        return [when for when, body in self.chunks if body == b": ping\n\n"]


def stream(
    broadcast: JournalBroadcast, client: Client, *, ping_s: float, send_timeout_s: float
) -> asyncio.Task[None]:
    response = EventStream(
        broadcast,
        after=None,
        caller=None,
        call_id=None,
        ping_s=ping_s,
        connection_ends=ConnectionEnds(send_timeout_s, client.abort),
    )
    return asyncio.get_running_loop().create_task(
        response({"type": "http", "method": "GET"}, client.receive, client.send)
    )


@pytest.mark.virtual_time
async def test_a_client_that_was_idle_has_the_whole_time_for_the_next_chunk(opened: OpenJournal) -> None:
    broadcast, client = JournalBroadcast(opened(), BroadcastLimits()), Client()
    streaming = stream(broadcast, client, ping_s=1000.0, send_timeout_s=2.0)
    await asyncio.sleep(60)
    client.takes_s = 1.5
    broadcast.publish(broadcast.journal.append([event(1)]))
    await asyncio.sleep(3)
    assert not client.cut
    assert client.chunks[-1][1].startswith(b"event: tool_stream\nid: 1\n")
    client.takes_s = 100.0
    broadcast.publish(broadcast.journal.append([event(2)]))
    await asyncio.wait_for(streaming, 4)
    assert client.cut


@pytest.mark.parametrize("takes_s", [0.0, 0.9, 1.2])
@pytest.mark.virtual_time
async def test_a_ping_comes_when_nothing_was_sent_for_its_period(takes_s: float, opened: OpenJournal) -> None:
    broadcast, client = JournalBroadcast(opened(), BroadcastLimits()), Client()
    streaming = stream(broadcast, client, ping_s=1.0, send_timeout_s=5.0)
    client.takes_s = takes_s
    for seq in range(1, 20):
        await asyncio.sleep(0.9)
        broadcast.publish(broadcast.journal.append([event(seq)]))
    assert client.pings() == [], "events are signs of life themselves"
    await until(client.pings)
    (before, _), (ping, _) = client.chunks[-2:]
    assert 1.0 <= ping - takes_s - before <= 1.26
    broadcast.close()
    await streaming


@pytest.mark.virtual_time
async def test_readers_that_split_lines_as_python_does_read_each_event_whole(opened: OpenJournal) -> None:
    broadcast, client = JournalBroadcast(opened(), BroadcastLimits()), Client()
    streaming = stream(broadcast, client, ping_s=1.0, send_timeout_s=5.0)
    text = "a\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029 \U0001f600"
    await until(lambda: client.chunks)
    broadcast.publish(broadcast.journal.append([event(1, text=text, data={text: [text]})]))
    await until(lambda: len(client.chunks) == 2)
    kind, id, data, end = client.chunks[-1][1].decode().splitlines()
    assert (kind, id, end) == ("event: tool_stream", "id: 1", "")
    read = json.loads(data.removeprefix("data: "))
    assert (read["text"], read["data"]) == (text, {text: [text]})
    broadcast.close()
    await streaming


@pytest.mark.virtual_time
async def test_nothing_of_a_stream_is_left_on_the_loop(opened: OpenJournal) -> None:
    broadcast, client = JournalBroadcast(opened(), BroadcastLimits()), Client()
    streaming = stream(broadcast, client, ping_s=1.0, send_timeout_s=5.0)
    await until(lambda: client.chunks)
    broadcast.close()
    await streaming
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a watcher that polls would keep virtual time going"
    assert broadcast.statistics().readers == 0
