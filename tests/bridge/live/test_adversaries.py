"""Clients and robots that mean ill, or are broken: what they cost others."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import threading
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from dimos_streams import clock
from dimos_streams.bridge.live import topic as live_topic
from dimos_streams.bridge.live import topics as live_topics
from dimos_streams.bridge.live.frames import Fault, LiveFrame, Received, frame_of
from dimos_streams.bridge.live.kinds import TopicInfo
from dimos_streams.bridge.live.requests import MAX_TOPICS, TopicRequest
from dimos_streams.bridge.live.routes import MAX_VIEWERS
from dimos_streams.bridge.live.socket import _read
from dimos_streams.errors import BusError
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.std_msgs import Float32, String
from dimos_streams.messages.time import header
from tests.bridge.live.watched_topics import (
    LiveSocket,
    SeenFrame,
    at,
    looking,
    picture,
    publish,
    sent_until,
    subscribed,
    topics,
)
from tests.bridge.scene import Scene
from tests.bridge.strangers import check_strangers_are_refused
from tests.helpers import until


def _large_jpeg(bytes_: int) -> Image:
    """A file of that size, which nobody looks into on its way."""
    return Image(header=header("camera", 1), encoding="jpeg", width=8, height=8, data=bytes(bytes_))


@contextlib.asynccontextmanager
async def stalled(scene: Scene, *watched: str) -> Any:
    """A client that says what it wants, and reads nothing."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    made.connect(("127.0.0.1", int(scene.bridge.url.rsplit(":", 1)[1])))
    made.setblocking(False)
    reading, writing = await asyncio.open_connection(sock=made)
    try:
        host = scene.bridge.url.removeprefix("http://")
        upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
        writing.write(f"GET /live HTTP/1.1\r\nHost: {host}\r\n{upgrade}dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        await reading.readuntil(b"\r\n\r\n")
        reading._transport.pause_reading()  # type: ignore[attr-defined]
        request = json.dumps({"watch": {topic: {} for topic in watched}}).encode()
        assert len(request) < 126
        writing.write(bytes([0x81, 0x80 | len(request), 0, 0, 0, 0]) + request)
        await until(lambda: all(subscribed(scene, topic) for topic in watched))
        yield
    finally:
        writing.transport.abort()


def connections(scene: Scene) -> set[Any]:
    """Those of the bridge's server."""
    server = scene.bridge.endpoint.server
    assert server is not None
    assert server._server is not None
    return set(server._server.server_state.connections)


@pytest.mark.slow
def test_a_client_that_stalls_is_cut_off_and_delays_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with topics(send_timeout_s=0.5) as scene, stalled(scene, "/color_image"), looking(scene) as other:
            live = scene.bridge.live
            await other.watch("/color_image")
            publish(scene, "/color_image", _large_jpeg(1024 * 1024))
            await until(lambda: other.frames)
            for number in range(1, 20):
                await sent_until(
                    lambda: publish(scene, "/color_image", picture()),
                    lambda number=number: len(other.frames) > number,  # type: ignore[misc]
                )
            unseen = sorted(viewer.unseen for viewer in live._viewers)
            assert unseen[-1] < 1.1 * 1024 * 1024, "one frame is all that waits for it"
            await until(lambda: live.viewers == 1)
            await until(lambda: len(connections(scene)) == 1, timeout_s=5.0)

    asyncio.run(scenario())
    assert "reads nothing; it was cut off" in caplog.text


@pytest.mark.slow
def test_a_client_that_never_acknowledges_has_one_frame_of_each_topic() -> None:
    async def scenario() -> None:
        watched = ("/level", "/color_image")
        async with topics() as scene, looking(scene, *watched, acknowledges=False) as silent:
            async with looking(scene, *watched) as other:
                for number in range(1, 31):
                    publish(scene, "/level", Float32(data=number))
                    publish(scene, "/color_image", picture())
                    await until(lambda number=number: len(other.frames) == 2 * number)  # type: ignore[misc]
            assert sorted(frame.header["topic"] for frame in silent.frames) == sorted(watched)
            await silent.see("/level")
            await until(lambda: len(silent.of("/level")) == 2)
            assert silent.of("/level")[1].header["dropped"] == 28
            publish(scene, "/level", Float32())
            await silent.see("/level")
            await until(lambda: len(silent.of("/level")) == 3)
            assert len(silent.of("/color_image")) == 1

    asyncio.run(scenario())


@pytest.mark.slow
def test_so_many_may_watch_and_one_more_is_told() -> None:
    async def scenario() -> None:
        async with topics() as scene, contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(looking(scene)) for _ in range(MAX_VIEWERS)]
            refused = LiveSocket(await connect(at(scene)))
            await refused.task
            assert (refused.connection.close_code, refused.texts) == (1013, [])
            for client in clients:
                await client.watch("/color_image", "/level")
            live = scene.bridge.live
            await until(lambda: all(len(viewer._watched) == 2 for viewer in live._viewers))
            for number in range(1, 4):
                publish(scene, "/color_image", picture())
                await until(lambda number=number: all(len(each.frames) == number for each in clients))  # type: ignore[misc]
            await clients[0].close()
            await until(lambda: live.viewers == MAX_VIEWERS - 1)
            async with looking(scene, "/level"):
                pass

    asyncio.run(scenario())


FORGED: list[tuple[Any, str]] = [
    (b"\x00\x01", "send text, not bytes"),
    ("{", "not JSON"),
    ("NaN", "not JSON"),
    ("[" * 5000, "not JSON"),
    ([], "not a request"),
    ({}, "not a request"),
    ({"watch": {}, "seen": "/level"}, "not a request"),
    ({"watch": {}, "max_hz": 1}, "max_hz: there is nothing of this name"),
    ({"watch": ["/level"]}, "watch: it must be an object"),
    ({"watch": {"/level": None}}, "watch./level: it must be an object"),
    ({"watch": {"/level": {"max_hz": 0}}}, "at least 0.01"),
    ({"watch": {"/level": {"max_hz": "fast"}}}, "max_hz: it must be a number"),
    ({"watch": {f"/{number}": {} for number in range(MAX_TOPICS + 1)}}, f"at most {MAX_TOPICS} items"),
    ({"watch": {"/" + "x" * 500: {}}}, "at most 200 characters"),
    ({"seen": 7}, "seen: it must be a text"),
    ({"watch": {"/levle": {}}}, "nobody in this run publishes on '/levle'; did you mean '/level'?"),
    ({"watch": {"/odd": {}}}, "the bridge knows no message type 'kitchen_msgs.Kettle'"),
    ({"watch": {"/dimos_streams/status#dimos_streams.ModuleStatus": {}}}, "nobody in this run publishes on"),
]


def test_what_is_no_request_is_answered_and_changes_nothing() -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/level") as client:
            for request, words in FORGED[:15]:
                count = len(client.said("error"))
                await client.send(request)
                await until(lambda count=count: len(client.said("error")) > count)  # type: ignore[misc]
                assert words in client.said("error")[-1]["text"], client.said("error")[-1]
                assert '{"seen": TOPIC}' in client.said("error")[-1]["text"]
            for topic in ("/scan", "/nothing", "/level", "/level"):
                await client.see(topic)
            publish(scene, "/level", Float32(data=1.0))
            await until(lambda: client.frames)
            for request, words in FORGED[15:]:
                count = len(client.said("error"))
                await client.send(request)
                await until(lambda count=count: len(client.said("error")) > count)  # type: ignore[misc]
                assert words in client.said("error")[-1]["text"], client.said("error")[-1]
                assert client.said("error")[-1]["topic"] in request["watch"]

    asyncio.run(scenario())


class _Talker:
    """A socket of a client that says the same for ever, as fast as it is read."""

    def __init__(self, request: Any, most: int) -> None:
        self.left, self._text = most, json.dumps(request)

    async def receive(self) -> dict[str, Any]:
        self.left -= 1
        return {"type": "websocket.receive", "text": self._text} if self.left >= 0 else {"type": "disconnect"}


@pytest.mark.virtual_time
async def test_who_says_too_much_is_read_later() -> None:
    """Each request may cost subscriptions."""
    async with topics(http=False) as scene:
        for sent, longest in (({"watch": {"/scan": {}, "/level": {}}}, 30.0), ({"seen": "/scan"}, 0.6), ("no", 12.0)):
            began = clock.monotonic()
            with contextlib.closing(scene.bridge.live.view()) as viewer:
                await _read(_Talker(sent, 1000), viewer)  # type: ignore[arg-type]
            assert longest / 2 - 0.5 <= clock.monotonic() - began <= longest


def _with_token(token: str) -> list[Subprotocol]:
    text = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return [Subprotocol("dimos-streams"), Subprotocol(f"bearer.{text}")]


def test_strangers_are_refused() -> None:
    async def scenario() -> None:
        async with topics(token="t0ken") as scene:
            port = int(scene.bridge.url.rsplit(":", 1)[1])
            await check_strangers_are_refused(port, "/live")
            for sent in ("wrong", "!"):
                with pytest.raises(InvalidStatus) as refused:
                    await connect(f"ws://127.0.0.1:{port}/live", subprotocols=_with_token(sent))
                assert refused.value.response.status_code == 401
                assert json.loads(refused.value.response.body)["type"].endswith(":token-needed")
                assert "Sec-WebSocket-Protocol" not in refused.value.response.headers
            async with connect(f"ws://127.0.0.1:{port}/live", subprotocols=_with_token("t0ken")) as viewer:
                assert viewer.response is not None
                assert viewer.response.headers.get_all("Sec-WebSocket-Protocol") == ["dimos-streams"]
            own = f"http://127.0.0.1:{port}"
            async with looking(scene, "/level", query="?token=t0ken", origin=own) as client:
                await client.send("x" * (256 * 1024 + 1))
                await client.task
                assert client.connection.close_code == 1009
            assert scene.bridge.live.viewers == 0

    asyncio.run(scenario())


@pytest.mark.slow
def test_bytes_that_are_no_message_are_told_of_and_the_next_one_is_shown() -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/color_image", "/level") as client:
            for channel in ("/color_image#sensor_msgs.Image", "/level#std_msgs.Float32"):
                scene.inner.publish(channel, b"garbage")
            await until(lambda: len(client.said("error")) == 2)
            by_topic = {said["topic"]: said["text"] for said in client.said("error")}
            assert "another type or definition" in by_topic["/level"]
            assert "bad sensor_msgs.Image on '/color_image#sensor_msgs.Image'" in by_topic["/color_image"]
            publish(scene, "/level", Float32(data=2.0))
            await until(lambda: client.frames)
            assert client.frames[0].header["message"] == {"data": 2.0}

    asyncio.run(scenario())


def test_what_goes_wrong_in_a_frame_costs_only_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/level", "/note") as client:

            def broken(*_: object) -> Any:
                raise RuntimeError("a mistake of ours")

            with monkeypatch.context() as patch:
                patch.setattr(live_topic, "frame_of", broken)
                publish(scene, "/level", Float32())
                await until(lambda: client.said("error"))
            assert "can't be shown" in client.said("error")[0]["text"]
            publish(scene, "/note", String(data="well"))
            await until(lambda: client.frames)

    asyncio.run(scenario())
    assert "a mistake of ours" in caplog.text


@pytest.mark.slow
def test_a_bus_that_refuses_ends_the_connection_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene) as client, looking(scene, "/level") as other:

            def refuse(*_: object, **__: object) -> Any:
                raise BusError("the packet filter can't be changed")

            monkeypatch.setattr(scene.bridge.live.topic("/note")._bus, "subscribe", refuse)
            await client.watch("/note")
            await client.task
            assert client.connection.close_code == 1001
            publish(scene, "/level", Float32())
            await until(lambda: other.frames)

    asyncio.run(scenario())
    assert "was let go: the packet filter can't be changed" in caplog.text


def test_a_raw_picture_is_made_a_jpeg_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        made = []

        def counted(info: TopicInfo, received: Received) -> LiveFrame | Fault:
            made.append(threading.current_thread().name)
            return frame_of(info, received)

        monkeypatch.setattr(live_topic, "frame_of", counted)
        async with topics() as scene, looking(scene, "/color_image") as one, looking(scene, "/color_image") as two:
            import numpy as np

            pixels = np.zeros((720, 1280, 3), np.uint8)
            publish(scene, "/color_image", image_from_array(pixels, "rgb8", header("camera", 4)))
            await until(lambda: one.frames and two.frames)
            assert one.frames == two.frames
            assert one.frames[0].header["width"] == 1280
            assert one.frames[0].payload[:2] == b"\xff\xd8"
            assert [name.partition("_")[0] for name in made] == ["live"], "once, in a thread"

    asyncio.run(scenario())


def test_who_has_too_much_on_the_way_is_cut_off_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(live_topics, "MAX_UNSEEN", 3 * 1024 * 1024)
        async with topics() as scene, looking(scene, "/color_image", acknowledges=False) as first:
            publish(scene, "/color_image", _large_jpeg(2 * 1024 * 1024))
            await until(lambda: first.frames)
            async with looking(scene, "/color_image") as second:
                publish(scene, "/color_image", _large_jpeg(2 * 1024 * 1024 + 1))
                await until(lambda: second.frames)
                await first.task
                publish(scene, "/color_image", picture())
                await until(lambda: len(second.frames) == 2)
                assert scene.bridge.live.viewers == 1

    asyncio.run(scenario())


@pytest.mark.virtual_time
async def test_whose_own_frame_is_more_than_may_be_on_the_way_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_topics, "MAX_UNSEEN", 10)
    async with topics(http=False) as scene:
        looker = _Looker(scene, level=None)
        publish(scene, "/level", Float32())
        await looker.task
        assert (looker.frames, scene.bridge.live.viewers) == ([], 0)


class _Looker:
    """A client without a socket, that has seen each frame at once."""

    def __init__(self, scene: Scene, **requests: float | None) -> None:
        self.frames: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.viewer = scene.bridge.live.view()
        self.viewer.watch({f"/{name}": TopicRequest(max_hz=max_hz) for name, max_hz in requests.items()})
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while (message := await self.viewer.next()) is not None:
            if isinstance(message, bytes):
                header = SeenFrame.of(message).header
                self.frames.append(header)
                self.viewer.see(header["topic"])
            elif '"type":"error"' in message:
                self.errors.append(message)


@pytest.mark.virtual_time
async def test_no_more_frames_come_than_were_asked_for() -> None:
    async with topics(http=False) as scene:
        looker = _Looker(scene, level=5.0)
        for _ in range(300):
            publish(scene, "/level", Float32())
            await asyncio.sleep(0.01)
        assert 14 <= len(looker.frames) <= 16
        assert looker.frames[-1]["dropped"] == looker.frames[-1]["number"] - len(looker.frames)
        looker.viewer.close()
        await looker.task


@pytest.mark.virtual_time
async def test_who_sends_what_is_no_message_is_told_of_once_a_second() -> None:
    async with topics(http=False) as scene:
        looker = _Looker(scene, level=None)
        for _ in range(350):
            scene.inner.publish("/level#std_msgs.Float32", b"garbage")
            await asyncio.sleep(0.01)
        assert 3 <= len(looker.errors) <= 5
        looker.viewer.close()
        await looker.task


@pytest.mark.parametrize(("is_replaced", "code"), [(False, 1001), (True, 1012)])
def test_the_bridge_stops_with_viewers(is_replaced: bool, code: int) -> None:
    async def scenario() -> None:
        async with topics() as scene:
            scene.is_replaced = is_replaced
            clients = [LiveSocket(await connect(at(scene))) for _ in range(3)]
            await until(lambda: all(client.said("topics") for client in clients))
            async with asyncio.timeout(3):
                await scene.processes[0].host.stop()
                await asyncio.gather(*(client.task for client in clients))
            assert [client.connection.close_code for client in clients] == [code] * 3

    asyncio.run(scenario())
