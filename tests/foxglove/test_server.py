"""What viewers are shown and may do, over real sockets; the run's bus is in memory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from dimos_streams.bus import Bus, create_bus
from dimos_streams.client import asking_again
from dimos_streams.clock import run_virtual
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.secrets import know
from dimos_streams.errors import UserError
from dimos_streams.foxglove.door import outbox, viewer_door
from dimos_streams.foxglove.door.admission import FOXGLOVE_APP, AdmissionRules
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.door.viewer_door import ViewerDoor
from dimos_streams.foxglove.door.websocket_frames import text_frame
from dimos_streams.foxglove.module import FoxgloveServer
from dimos_streams.foxglove.order_line import MAX_WAITING
from dimos_streams.foxglove.server import ViewerServer
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Pose, PoseStamped, TransformStamped, Twist, Vector3
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.std_msgs import Header, Time
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.module import RunContext, Services
from tests.foxglove.viewer import SUBPROTOCOL, viewing
from tests.helpers import no_threads, until

pytest.importorskip("foxglove", reason="the extra `foxglove` is not installed")

IMAGE, SCAN, TWIST = "/color_image#sensor_msgs.Image", "/scan#sensor_msgs.LaserScan", "/cmd_vel#geometry_msgs.Twist"
ELECTRON = "Mozilla/5.0 (X11; Linux x86_64) Lichtblick/1.10.0 Chrome/128.0.6613.186 Electron/32.2.5 Safari/537.36"
NOBODY = "http://127.0.0.1:1"


class Show:
    """A server for viewers on a bus in memory."""

    def __init__(self, bus: Bus, server: FoxgloveServer) -> None:
        self.bus = bus
        self.port = server.port
        self.url = f"ws://127.0.0.1:{server.port}"

    def publish(self, topic: str, message: Message) -> None:
        self.bus.publish(channel_name(topic, type(message)), encode(message))

    def listens_to(self, channel: str) -> bool:
        return self.bus.has_subscribers(channel)


@asynccontextmanager
async def shown(
    channels: Mapping[str, str] | None = None, *, token: str | None = None, bridge: str = NOBODY, **config: Any
) -> AsyncIterator[Show]:
    """``channels`` are those of the run, each with its namespace."""
    bus = create_bus("memq://")
    await bus.open()
    services = Services()
    services.offer(Bus, bus)  # type: ignore[type-abstract]
    context = RunContext(
        channels=channels if channels is not None else {TWIST: ""}, token=token, services=services, bridge_url=bridge
    )
    server = FoxgloveServer({"port": 0, **config}, name="foxglove", context=context)
    try:
        await server.start()
        yield Show(bus, server)
    finally:
        await server.stop()
        await bus.close()


@pytest.mark.feature("I2")
def test_what_is_watched_is_listened_to_and_nothing_else() -> None:
    async def scenario() -> None:
        async with shown({TWIST: "", SCAN: ""}) as show, viewing(show.url) as viewer:
            await viewer.until(lambda: {"/cmd_vel", "/scan", "/tool_streams/log"} <= viewer.channels.keys())
            channel = viewer.channels["/scan"]
            assert (channel["schemaName"], channel["encoding"]) == ("foxglove.LaserScan", "json")
            ranges = json.loads(channel["schema"])["properties"]["ranges"]
            assert ranges == {"type": "array", "items": {"type": "number"}}
            assert not show.bus.subscriptions()

            await viewer.subscribe("/cmd_vel")
            await until(lambda: show.listens_to(TWIST))
            assert not show.listens_to(SCAN)
            show.publish("/cmd_vel", Twist(linear=Vector3(x=0.5)))
            assert (await viewer.first("/cmd_vel"))["linear"] == {"x": 0.5, "y": 0.0, "z": 0.0}
            async with viewing(show.url) as other:
                await other.subscribe("/cmd_vel")
                await viewer.unsubscribe("/cmd_vel")
                while not other.seen:
                    show.publish("/cmd_vel", Twist(linear=Vector3(x=0.7)))
                    await asyncio.sleep(0.01)
                assert (await other.first("/cmd_vel"))["linear"]["x"] == 0.7
            await until(lambda: not show.bus.subscriptions())

    asyncio.run(scenario())


def test_a_picture_says_by_itself_how_it_is_shown() -> None:
    async def scenario() -> None:
        async with shown({IMAGE: "", "/depth_image#sensor_msgs.Image": ""}) as show, viewing(show.url) as viewer:
            assert "/color_image" not in viewer.channels
            stamp = Header(stamp=Time(sec=7, nsec=5), frame_id="camera_optical")
            show.publish("/color_image", Image(header=stamp, encoding="jpeg", data=b"\xff\xd8"))
            show.publish("/depth_image", Image(encoding="16UC1", width=1, height=1, step=2, data=b"\1\2"))
            await viewer.subscribe("/color_image")
            await viewer.until(lambda: "/depth_image" in viewer.channels)
            assert viewer.channels["/color_image"]["schemaName"] == "foxglove.CompressedImage"
            assert viewer.channels["/depth_image"]["schemaName"] == "foxglove.RawImage"
            await until(lambda: show.listens_to(IMAGE) and not show.listens_to("/depth_image#sensor_msgs.Image"))
            show.publish("/color_image", Image(header=stamp, encoding="jpeg", data=b"\xff\xd8\xff"))
            picture = await viewer.first("/color_image")
            assert base64.b64decode(picture["data"]) == b"\xff\xd8\xff"
            assert (picture["timestamp"], picture["format"]) == ({"sec": 7, "nsec": 5}, "jpeg")

    asyncio.run(scenario())


def test_of_a_topic_with_several_types_that_is_shown_which_comes() -> None:
    poses, odometry = "/odom#geometry_msgs.PoseStamped", "/odom#nav_msgs.Odometry"

    async def scenario() -> None:
        async with shown({poses: "", odometry: ""}) as show, viewing(show.url) as viewer:
            show.publish("/odom", PoseStamped())
            await viewer.until(lambda: {"/odom", "/odom/pose"} <= viewer.channels.keys())
            assert viewer.channels["/odom"]["schemaName"] == "geometry_msgs.PoseStamped"
            assert show.listens_to(odometry), "perhaps it comes later"

    asyncio.run(scenario())


def test_robots_have_topics_and_frames_of_their_own() -> None:
    channels = {
        f"/robot{n}/{each}": f"robot{n}"
        for n in (1, 2)
        for each in ("tf#tf2_msgs.TFMessage", "odom#nav_msgs.Odometry")
    }

    async def scenario() -> None:
        async with shown(channels) as show, viewing(show.url) as viewer:
            topics = [f"/robot{n}/{each}" for n in (1, 2) for each in ("tf", "odom/pose")]
            await viewer.subscribe(*topics)
            await until(lambda: all(map(show.listens_to, channels)))
            for n in (1, 2):
                base = TransformStamped(header=Header(frame_id="odom"), child_frame_id="base_link")
                odom = TransformStamped(header=Header(frame_id="map"), child_frame_id=f"robot{n}/odom")
                show.publish(f"/robot{n}/tf", TFMessage(transforms=[base, odom]))
                show.publish(f"/robot{n}/odom", Odometry(header=Header(frame_id="odom")))
            for n in (1, 2):
                base, odom = (await viewer.first(f"/robot{n}/tf"))["transforms"]
                assert (base["parent_frame_id"], base["child_frame_id"]) == (f"robot{n}/odom", f"robot{n}/base_link")
                assert (odom["parent_frame_id"], odom["child_frame_id"]) == ("map", f"robot{n}/odom")
                assert (await viewer.first(f"/robot{n}/odom/pose"))["frame_id"] == f"robot{n}/odom"

    asyncio.run(scenario())


def test_what_is_damaged_or_unknown_is_not_shown_and_ends_nothing() -> None:
    async def scenario() -> None:
        channels = {TWIST: "", IMAGE: "", "/own#nobody.Knows": ""}
        async with shown(channels) as show, viewing(show.url) as viewer:
            await viewer.subscribe("/cmd_vel")
            await until(lambda: show.listens_to(TWIST))
            show.bus.publish(TWIST, b"damaged")
            show.bus.publish(IMAGE, b"damaged")
            show.publish("/cmd_vel", Twist())
            await viewer.first("/cmd_vel")
            assert "/own" not in viewer.channels

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 101),
        ({"Origin": FOXGLOVE_APP}, 101),
        ({"Origin": "http://localhost:8765", "Host": "localhost:8765"}, 101),
        ({"Origin": "http://localhost:8080"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "file://", "User-Agent": ELECTRON}, 101),
        ({"Origin": "file://", "User-Agent": ELECTRON.replace("Lichtblick/", "foxglove-studio-desktop/")}, 101),
        ({"Origin": "file://", "User-Agent": ELECTRON.replace("Lichtblick/", "Code/")}, 403),
        ({"Origin": "vscode-webview://1a2b", "User-Agent": ELECTRON.replace("Lichtblick/", "Code/")}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": "file://", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0.0.0 Safari/537.36"}, 403),
        ({"Origin": "https://evil.example", "User-Agent": ELECTRON}, 403),
        ({"Origin": "null", "User-Agent": ELECTRON}, 403),
        ({"Origin": "https://lichtblick.example"}, 101),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "https://app.foxglove.dev.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "chrome-extension://abcdefgh"}, 403),
        ({"Origin": "http://[bad"}, 403),
        ({"Host": "rebound.example"}, 403),
        ({"Host": "localhost:80.evil.example"}, 403),
    ],
)
def test_without_a_token_strangers_pages_are_refused(headers: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        async with shown(origins=("https://lichtblick.example",)) as show:
            assert await answered(show.url, headers) == status

    asyncio.run(scenario())


HANDSHAKE = (
    "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
)


@pytest.mark.parametrize(
    ("head", "status", "why"),
    [
        ("GET / HTTP/1.1\r\n" + HANDSHAKE, 101, ""),
        ("GET http://localhost/ HTTP/1.1\r\n" + HANDSHAKE, 101, ""),
        ("GET http://evil.example/ HTTP/1.1\r\n" + HANDSHAKE, 403, "this server is not 'evil.example'"),
        ("GET http://localhost@evil.example/ HTTP/1.1\r\n" + HANDSHAKE, 403, "this server is not"),
        ("GET ws://evil.example/ HTTP/1.1\r\n" + HANDSHAKE, 400, "a viewer asks for a path"),
        ("GET evil.example:80 HTTP/1.1\r\n" + HANDSHAKE, 400, "a viewer asks for a path"),
        ("POST / HTTP/1.1\r\n" + HANDSHAKE, 400, "GET over HTTP/1.1 is needed"),
        ("GET / HTTP/1.0\r\n" + HANDSHAKE, 400, "GET over HTTP/1.1 is needed"),
        ("GET / HTTP/1.1\r\n" + HANDSHAKE + "X-Folded: a\r\n b\r\n", 400, "each in one line"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n", 400, "Sec-WebSocket-Protocol: foxglove.sdk.v1"),
        ("GET / HTTP/1.1\r\n" + HANDSHAKE.replace(SUBPROTOCOL, "foxglove.websocket.v1"), 400, SUBPROTOCOL),
        ("GET / HTTP/1.1\r\n" + HANDSHAKE.partition("Sec-WebSocket-Protocol")[0], 400, SUBPROTOCOL),
    ],
)
def test_what_is_no_handshake_is_answered_with_what_is_missing(
    head: str, status: int, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A log of its own: others may have said so just now.
    monkeypatch.setattr(viewer_door, "_log", LimitedLog(logging.getLogger("door")))

    async def scenario() -> None:
        async with shown() as show:
            reader, writer = await asyncio.open_connection("127.0.0.1", show.port)
            writer.write(f"{head}\r\n".encode())
            answer = (await (reader.readuntil(b"\r\n\r\n") if status == 101 else reader.read())).decode()
            assert (int(answer.split()[1]), why in answer) == (status, True)
            writer.close()

    asyncio.run(scenario())
    assert [why in line for line in caplog.messages if "a viewer was refused: " in line] == [True] * (status != 101)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/?token=secret", {"Origin": "https://anywhere.example", "Host": "robot.example"}, 101),
        ("/", {"Authorization": "Bearer secret"}, 101),
        ("/", {}, 401),
        ("/?token=", {}, 401),
        ("/?token=secre", {"Origin": FOXGLOVE_APP}, 401),
        ("//[x", {}, 401),
    ],
)
def test_with_a_token_whoever_has_it_may_look(path: str, headers: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        async with shown(token="secret") as show:
            assert await answered(show.url + path, headers) == status

    asyncio.run(scenario())


async def answered(url: str, headers: Mapping[str, str]) -> int:
    """The status with which a viewer's request is answered."""
    lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **headers}.items()]
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    key = ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Sec-WebSocket-Protocol: {SUBPROTOCOL}"]
    address, _, path = url.removeprefix("ws://").partition("/")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    try:
        writer.write("\r\n".join([f"GET /{path} HTTP/1.1", *lines, *upgrade, *key, "", ""]).encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


def test_what_is_no_request_is_refused_and_the_others_go_on() -> None:
    async def scenario() -> None:
        async with shown() as show, viewing(show.url) as viewer:
            for nonsense in (b"\0" * 20_000, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000, b"hello\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", show.port)
                writer.write(nonsense)
                assert (await reader.read(12)).startswith(b"HTTP/1.1 4")
                writer.close()
            with pytest.raises(InvalidStatus, match="400"):
                async with connect(show.url, proxy=None):
                    pass
            await viewer.say("no JSON")
            await viewer.say(json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 4711}]}))
            await viewer.until(lambda: len(viewer.complaints) == 2)
            await viewer.subscribe("/cmd_vel")
            await until(lambda: show.listens_to(TWIST))

    asyncio.run(scenario())


def test_wrong_requests_of_services_are_answered() -> None:
    async def scenario() -> None:
        async with shown() as show, viewing(show.url) as viewer:
            await viewer.until(lambda: len(viewer.services) == 6)
            request = viewer.services["/stop"]["request"]
            assert (request["schemaName"], request["encoding"]) == ("dimos_streams.RobotRequest", "json")
            for payload, why in (
                (b"{", "Refused: not a request for /stop: not JSON"),
                (b"[]", "it must be an object"),
                ({"robots": "all"}, "robots: there is nothing of this name (given: 'all') (fields: robot, reason)"),
                ({"reason": 5}, "reason: it must be a text"),
                ({"reason": "x" * 5000}, "it must have at most 4000 characters"),
            ):
                assert why in (await viewer.call("/stop", payload))["message"]
            know(token := "t0ken@of@the@run")
            assert "'[redacted]' names no approval" in (await viewer.call("/approve", {"approval": token}))["message"]
            assert (await viewer.call("/stop", b"", encoding="cdr"))["message"] == "Unsupported encoding"
            for service in viewer.services:
                assert f"the bridge at {NOBODY} can't be reached" in (await viewer.call(service, {}))["message"]

    asyncio.run(scenario())


def test_an_order_that_waits_for_its_answer_does_not_keep_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01,))

    async def scenario() -> None:
        asked = asyncio.Event()

        async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await reader.read(-1)
            writer.close()

        bridge = await asyncio.start_server(never, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{bridge.sockets[0].getsockname()[1]}"
        async with shown(bridge=url) as show, viewing(show.url) as viewer:
            waiting = asyncio.create_task(viewer.call("/stop", {}))
            await asked.wait()
            giving = [task for task in asyncio.all_tasks() if "carry_out" in repr(task)]
            assert giving
        assert all(order.done() for order in giving)
        waiting.cancel()
        bridge.close()

    asyncio.run(scenario())


@pytest.mark.slow
def test_who_orders_without_end_keeps_nobody_else_from_ordering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01,))

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))  # however few a small machine has
        asked = 0

        async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked += 1
            await reader.read(-1)
            writer.close()

        bridge = await asyncio.start_server(never, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{bridge.sockets[0].getsockname()[1]}"
        async with shown(bridge=url) as show, viewing(show.url) as greedy, viewing(show.url) as other:
            orders = [asyncio.create_task(greedy.call("/stop", {})) for _ in range(MAX_WAITING + 20)]
            await until(lambda: sum(each.done() for each in orders) == 20)
            refused = [each.result()["message"] for each in orders if each.done()]
            assert all("orders of this viewer have no answer yet" in why for why in refused)
            await until(lambda: asked == MAX_WAITING)
            orders.append(asyncio.create_task(other.call("/stop", {})))
            await until(lambda: asked == MAX_WAITING + 1)
            for each in orders:
                each.cancel()
        bridge.close()

    asyncio.run(scenario())


SUBSCRIBE = json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 1}]}).encode()
MANY = json.dumps({"op": "unsubscribe", "subscriptionIds": [*range(30_000)]}).encode()


@pytest.mark.parametrize(
    ("said", "times"),
    [
        (b"\x00\x80" + bytes(4), 1_000_000),
        (b"\x8a\x80" + bytes(4), 1_000_000),
        (text_frame(SUBSCRIBE), 200_000),
        (text_frame(MANY), 100),
    ],
    ids=["fragments", "pongs", "subscriptions", "texts"],
)
def test_who_says_more_than_a_viewer_has_to_say_is_cut_off_and_no_other(said: bytes, times: int) -> None:
    """The SDK and the loop have a turn for every frame, and for every subscription: a stop would wait behind them."""

    async def scenario() -> None:
        unread: dict[str, Any] = {"subprotocols": [SUBPROTOCOL], "proxy": None, "close_timeout": 0}
        async with shown() as show, viewing(show.url) as other, connect(show.url, **unread) as greedy:
            greedy.transport.write(b"\x01\x80" + bytes(4) if said[0] == 0 else b"")
            greedy.transport.write(said * times)
            cut_off = asyncio.create_task(greedy.wait_closed())
            assert "message" in await other.call("/pause", {})
            await asyncio.wait_for(cut_off, 30)

    asyncio.run(scenario())


def test_what_viewers_say_wrong_does_not_fill_the_log(settled_log: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with shown() as show, viewing(show.url) as viewer:
            for number in range(100):
                await viewer.say(f'{{"op": "{number}"}}')
            assert "message" in await viewer.call("/pause", {})

    asyncio.run(scenario())
    complaints = [record for record in settled_log.records if "Invalid message" in record.getMessage()]
    assert len(complaints) <= 10


def test_where_services_are_off_viewers_only_look() -> None:
    async def scenario() -> None:
        async with shown(services=False) as show, viewing(show.url) as viewer:
            await viewer.until(lambda: "/cmd_vel" in viewer.channels)
            assert (viewer.info["capabilities"], viewer.services) == ([], {})

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_viewer_that_reads_nothing_holds_up_nobody() -> None:
    async def scenario() -> None:
        async with shown({IMAGE: ""}) as show, viewing(show.url) as viewer:
            show.publish("/color_image", Image(encoding="jpeg"))
            await viewer.subscribe("/color_image")
            async with connect(show.url, subprotocols=[SUBPROTOCOL], max_queue=1, proxy=None) as stalled:
                asked = {"id": 1, "channelId": viewer.channels["/color_image"]["id"]}
                await stalled.send(json.dumps({"op": "subscribe", "subscriptions": [asked]}))
                await until(lambda: show.listens_to(IMAGE))
                stalled.transport.pause_reading()
                for number in range(200):  # more than what may wait for anybody
                    show.publish("/color_image", Image(encoding="jpeg", data=bytes([number]) * 60_000))
                    await viewer.first("/color_image", after=number)
                await viewer.say("no JSON")
                await viewer.until(lambda: bool(viewer.complaints))
                stalled.transport.abort()

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_viewer_that_takes_nothing_for_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "STALLED_S", 0.2)

    async def scenario() -> None:
        async with shown({IMAGE: ""}) as show, viewing(show.url) as viewer:
            show.publish("/color_image", Image(encoding="jpeg"))
            await viewer.until(lambda: "/color_image" in viewer.channels)
            async with connect(show.url, subprotocols=[SUBPROTOCOL], max_queue=1, proxy=None) as stalled:
                asked = {"id": 1, "channelId": viewer.channels["/color_image"]["id"]}
                await stalled.send(json.dumps({"op": "subscribe", "subscriptions": [asked]}))
                await until(lambda: show.listens_to(IMAGE))
                stalled.transport.pause_reading()
                while show.listens_to(IMAGE):
                    show.publish("/color_image", Image(encoding="jpeg", data=bytes(150_000)))
                    await asyncio.sleep(0.005)
                stalled.transport.abort()

    asyncio.run(scenario())


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a connection and break it off, as an SDK that ends does."""
    await reader.readuntil(b"\r\n\r\n")
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def test_whether_viewers_keep_up_can_be_asked_while_a_connection_is_lost() -> None:
    async def scenario() -> None:
        sdk = await asyncio.start_server(_reset, "127.0.0.1", 0)
        viewers = ViewerDoor(AdmissionRules(), sdk.sockets[0].getsockname()[:2], Arrivals())
        port = await viewers.open("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        ended = asyncio.ensure_future(reader.read())
        while not ended.done():  # at each step of the loop, since it is lost for a few of them only
            assert viewers.keeps_up
            await asyncio.sleep(0)
        await asyncio.gather(ended, return_exceptions=True)
        writer.transport.abort()
        await viewers.close()
        sdk.close()

    asyncio.run(scenario())


def test_an_address_that_cannot_be_served_is_an_error() -> None:
    async def taken() -> None:
        async with shown() as show, shown(port=show.port):
            pass

    async def foreign() -> None:
        async with shown(host="0.0.0.0"):
            pass

    async def foreign_with_token() -> None:
        async with shown(host="0.0.0.0", token="secret") as show:
            assert await answered(f"{show.url}/?token=secret", {}) == 101

    with pytest.raises(UserError, match=r"viewers can't be served on 127\.0\.0\.1:\d+: .*in use; .*--foxglove"):
        asyncio.run(taken())
    with pytest.raises(UserError, match=r"'0\.0\.0\.0', which others reach, needs a token: set --token"):
        asyncio.run(foreign())
    asyncio.run(foreign_with_token())


def test_in_virtual_time_nothing_is_served() -> None:
    async def scenario() -> int:
        async with shown() as show:
            return show.port

    assert run_virtual(scenario()) == 0


def test_a_pose_that_is_no_number_is_shown_as_null() -> None:
    async def scenario() -> None:
        async with shown({"/odom#nav_msgs.Odometry": ""}) as show, viewing(show.url) as viewer:
            await viewer.subscribe("/odom", "/odom/pose")
            message = Odometry()
            message.pose.pose = Pose()
            message.pose.pose.position.x = float("nan")
            while not {"/odom", "/odom/pose"} <= viewer.seen.keys():  # the bus hears of both requests by the first
                show.publish("/odom", message)
                await asyncio.sleep(0.01)
            assert (await viewer.first("/odom/pose"))["pose"]["position"]["x"] is None
            assert (await viewer.first("/odom"))["pose"]["pose"]["position"]["x"] is None

    asyncio.run(scenario())


def test_who_says_nothing_at_the_door_takes_no_place_of_viewers_and_is_bounded() -> None:
    async def scenario() -> None:
        async with shown() as show:
            with contextlib.ExitStack() as silent:

                def come(number: int) -> list[socket.socket]:
                    address = "127.0.0.1", show.port
                    return [silent.enter_context(socket.create_connection(address)) for _ in range(number)]

                first = come(viewer_door.MAX_CONNECTIONS + 8)[0]
                async with viewing(show.url) as viewer:
                    await viewer.until(lambda: "/cmd_vel" in viewer.channels)
                come(viewer_door.MAX_AT_THE_DOOR)
                first.setblocking(False)
                assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(first, 1), 5.0) == b""
                async with viewing(show.url) as viewer:  # the door is full of those who say nothing
                    await viewer.until(lambda: "/cmd_vel" in viewer.channels)

    asyncio.run(scenario())


def test_closing_ends_those_who_wait_at_the_door_without_a_word(settled_log: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with shown() as show:
            waiting = [await asyncio.open_connection("127.0.0.1", show.port) for _ in range(3)]
            (half,) = [writer for _, writer in waiting[:1]]
            half.write(b"GET / HTTP/1.1\r\n")
            await until(lambda: sum(task.get_name() == "viewer" for task in asyncio.all_tasks()) == 3)
        for reader, writer in waiting:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())
    assert [record.getMessage() for record in settled_log.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_server_that_gets_no_thread_for_it_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    async def scenario() -> None:
        server = ViewerServer("server", AdmissionRules(None, frozenset()), None, lambda: None)
        monkeypatch.setattr(server, "_sdk", SimpleNamespace(stop=partial(stopped.append, "the SDK's server")))
        with no_threads():
            await server.close()

    asyncio.run(scenario())
    assert stopped == ["the SDK's server"]
