"""What waits for viewers who read slowly, in bytes: frames as the SDK sends them, over sockets that nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from dimos_streams.foxglove.door import outbox as module
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.door.outbox import Outbox, Outboxes
from dimos_streams.foxglove.door.subscriptions import Subscriptions
from dimos_streams.foxglove.door.websocket_frames import read_frame_head
from dimos_streams.messages.sensor_msgs import Image
from tests.foxglove.test_server import IMAGE, TWIST, shown
from tests.foxglove.viewer import SUBPROTOCOL, viewing
from tests.helpers import until

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
TEXT, BINARY = 1, 2
_UNREAD: dict[str, Any] = {
    "subprotocols": [SUBPROTOCOL],
    "max_queue": 1,
    "max_size": None,
    "proxy": None,
    "close_timeout": 0,
}


def frame(payload: bytes, kind: int) -> bytes:
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65536 else b"\x7f" + size.to_bytes(8)
    )
    return bytes([0x80 | kind]) + length + payload


def message(number: int, size: int) -> bytes:
    """One of a channel."""
    return frame(b"\x01" + bytes([number]) * (size - 1), BINARY)


class Passage:
    """An outbox between what the SDK sends and a viewer's socket, which is read when the test says so."""

    def __init__(self, outbox: Outbox, viewer: socket.socket) -> None:
        self.outbox = outbox
        self.from_sdk = asyncio.StreamReader()
        self.filling: asyncio.Task[None]
        self._viewer = viewer

    async def read(self) -> list[tuple[int, bytes]]:
        """What the viewer gets by the end: of each frame its kind and the last 8 bytes."""
        self.from_sdk.feed_eof()
        reader, writer = await asyncio.open_connection(sock=self._viewer)
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        got = []
        while (head := await read_frame_head(reader)) is not None:
            got.append((head.read[0] & 0xF, (head.read + await reader.readexactly(head.rest))[-8:]))
        writer.close()
        return got


@asynccontextmanager
async def passage(all_of_them: Outboxes) -> AsyncIterator[Passage]:
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=ours)
    made = Passage(all_of_them.open(Subscriptions(writer, 10.0, Arrivals())), theirs)
    made.from_sdk.feed_data(ANSWER)
    made.filling = asyncio.create_task(made.outbox.fill(made.from_sdk))
    made.filling.add_done_callback(lambda _: writer.close())
    delivering = asyncio.create_task(made.outbox.deliver(writer))
    try:
        yield made
    finally:
        for task in (made.filling, delivering):
            task.cancel()
        await asyncio.gather(made.filling, delivering, return_exceptions=True)
        all_of_them.close(made.outbox)
        writer.transport.abort()
        theirs.close()


async def taken_in(*passages: Passage) -> None:
    """Wait until all that was sent has been looked at."""
    await until(lambda: all(not each.from_sdk._buffer for each in passages))  # type: ignore[attr-defined]
    await asyncio.sleep(0)


def test_for_who_reads_nothing_the_newest_messages_wait_and_all_that_must_not_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1_000_000)

    async def scenario() -> None:
        async with passage(Outboxes()) as one:
            for number in range(100):
                one.from_sdk.feed_data(message(number, 100_000) + frame(b"%08d" % number, TEXT))
                await taken_in(one)
                assert one.outbox.held <= 1_000_000
            got = await one.read()
            assert [int(end) for kind, end in got if kind == TEXT] == list(range(100))
            numbers = [end[-1] for kind, end in got if kind == BINARY]
            assert numbers[-1] == 99
            assert numbers == sorted(set(numbers)), "in the order in which they came"
            assert 8 <= len(numbers) <= 20
            assert got.index((TEXT, b"00000099")) > got.index((BINARY, bytes([99]) * 8)), "also among each other"

    asyncio.run(scenario())


def test_all_together_hold_so_much_and_who_has_most_loses_his_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES_IN_ALL", 3_000_000)

    async def scenario() -> None:
        everybody = Outboxes()
        async with passage(everybody) as greedy, passage(everybody) as modest:
            for number in range(40):
                greedy.from_sdk.feed_data(message(number, 300_000))
                await taken_in(greedy)
            assert 2_000_000 < everybody.held <= 3_000_000
            for number in range(10):
                modest.from_sdk.feed_data(message(number, 100_000))
                await taken_in(modest)
                assert everybody.held <= 3_000_000
            assert modest.outbox.held > 600_000, "nothing of his was dropped"

    asyncio.run(scenario())


def test_who_has_nothing_gets_one_message_whatever_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES_IN_ALL", 1_000_000)

    async def scenario() -> None:
        everybody = Outboxes()
        async with passage(everybody) as full, passage(everybody) as new:
            for each in (full, new):
                await until(lambda each=each: not each.outbox.held)  # type: ignore[misc]
            full.from_sdk.feed_data(message(1, 990_000))
            await taken_in(full)
            for number in (2, 3):
                new.from_sdk.feed_data(message(number, 900_000))
            await taken_in(new)
            assert len(await new.read()) == 1

    asyncio.run(scenario())


def test_a_message_for_which_there_is_never_room_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100_000)

    async def scenario() -> None:
        async with passage(Outboxes()) as one:
            one.from_sdk.feed_data(message(1, 200_000) + message(2, 50_000) + frame(b"", TEXT))
            assert [end[-1] for kind, end in await one.read() if kind == BINARY] == [2]

    asyncio.run(scenario())


def test_who_lets_too_much_pile_up_that_must_not_be_missing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1_000_000)

    async def scenario() -> None:
        async with passage(Outboxes()) as one:
            for _ in range(50):
                one.from_sdk.feed_data(frame(bytes(100_000), TEXT))
            with pytest.raises(ConnectionError, match="none of which may be missing"):
                await one.filling

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("I2")
def test_for_who_takes_nothing_no_messages_are_made_until_he_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("foxglove", reason="the extra `foxglove` is not installed")
    monkeypatch.setattr(module, "MAX_BYTES", 3_000_000)
    monkeypatch.setattr(module, "PAUSED_S", 0.05)
    picture = Image(encoding="rgb8", width=640, height=480, step=1920, data=bytes(921_600))

    async def scenario() -> None:
        async with shown({IMAGE: "", TWIST: ""}) as show, connect(show.url, **_UNREAD) as stalled:
            show.publish("/color_image", picture)
            channels: dict[str, int] = {}
            while not {"/color_image", "/cmd_vel"} <= channels.keys():
                advertised = json.loads(await stalled.recv())
                channels |= {each["topic"]: each["id"] for each in advertised.get("channels", ())}
            asked = [{"id": 7, "channelId": channels["/color_image"]}, {"id": 8, "channelId": channels["/cmd_vel"]}]
            await stalled.send(json.dumps({"op": "subscribe", "subscriptions": asked}))
            await until(lambda: show.listens_to(IMAGE) and show.listens_to(TWIST))
            stalled.transport.pause_reading()

            async with asyncio.timeout(20):
                while show.listens_to(IMAGE):
                    show.publish("/color_image", picture)
                    await asyncio.sleep(0.01)
            assert not show.bus.subscriptions(), "nothing is made for anybody"
            await stalled.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [8]}))

            stalled.transport.resume_reading()
            async with asyncio.timeout(20):
                while not show.listens_to(IMAGE):
                    with contextlib.suppress(TimeoutError):  # he may have got all that was on its way before
                        await asyncio.wait_for(stalled.recv(), 0.1)
            assert not show.listens_to(TWIST), "he wants it no more"
            show.publish("/color_image", picture)
            assert (await stalled.recv())[1:5] == (7).to_bytes(4, "little"), "by his own number"

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(3))
def test_what_a_viewer_says_passes_as_it_is_and_nothing_is_said_within_it(seed: int) -> None:
    rng = random.Random(seed)

    def masked(first: int, payload: bytes) -> bytes:
        mask = rng.randbytes(4)
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
        return bytes([first]) + length + mask + bytes(each ^ mask[place % 4] for place, each in enumerate(payload))

    subscribe = json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 2}]}).encode()
    others = [(0x81, subscribe), (0x81, b"{"), (0x82, bytes(5000)), (0x89, b"ping")]
    others += [(0x82, b""), (0x81, b'{"op": "subscribe", "subscriptions": [{}]}'), (0x81, b"[" * 50_000)]
    in_parts = [(0x02, b"begin"), (0x8A, b""), (0x00, b"more"), (0x80, b"end")]
    said = [*rng.sample(others, 7), *in_parts]

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        _, writer = await asyncio.open_connection(sock=ours)
        got, reader = b"", asyncio.StreamReader()
        subscriptions = Subscriptions(writer, 10.0, Arrivals())
        forwarding = asyncio.create_task(subscriptions.forward(reader))
        for first, payload in said:
            data = masked(first, payload)
            for part in (data[:3], data[3:]):
                reader.feed_data(part)
                for _ in range(5):
                    await asyncio.sleep(0)
            expected = data
            is_within = first in (0x02, 0x8A, 0x00)
            if (first == 0x81 and payload == subscribe) or is_within:
                subscriptions.pause()
                assert subscriptions.paused != is_within
                subscriptions.resume()
                assert not subscriptions.paused
                if not is_within:
                    asked = b'{"op": "unsubscribe", "subscriptionIds": [1]}'
                    again = b'{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 2}]}'
                    expected += b"".join(
                        b"\x81" + bytes([0x80 | len(text)]) + bytes(4) + text for text in (asked, again)
                    )
            got = b""
            while len(got) < len(expected):
                got += await asyncio.get_running_loop().sock_recv(theirs, 65536)
            assert got == expected
        reader.feed_eof()
        await forwarding
        writer.close()
        theirs.close()

    asyncio.run(scenario())


def resident() -> int:
    """The memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.feature("I2")
def test_raw_pictures_for_viewers_who_read_nothing_take_so_much_memory_and_no_more() -> None:
    pytest.importorskip("foxglove", reason="the extra `foxglove` is not installed")
    picture = Image(encoding="rgb8", width=640, height=480, step=1920, data=bytes(921_600))

    async def scenario() -> None:
        async with shown({IMAGE: ""}) as show, viewing(show.url) as viewer, contextlib.AsyncExitStack() as stalled:
            show.publish("/color_image", picture)
            await viewer.subscribe("/color_image")
            asked = {"id": 1, "channelId": viewer.channels["/color_image"]["id"]}
            before = resident()
            for _ in range(4):
                other = await stalled.enter_async_context(connect(show.url, **_UNREAD))
                await other.send(json.dumps({"op": "subscribe", "subscriptions": [asked]}))
                other.transport.pause_reading()
                stalled.callback(other.transport.abort)
            for number in range(80):
                show.publish("/color_image", picture)
                await viewer.first("/color_image", after=number)
                viewer.seen["/color_image"][number] = 0, {}
            # What waits by count is 80 pictures of 1.2 MB for each of them: 390 MB.
            assert resident() - before < 150e6

    asyncio.run(scenario())
