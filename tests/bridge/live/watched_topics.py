"""A bridge whose topics are watched over real sockets, and what is seen of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.time import header
from tests.bridge.scene import Scene
from tests.helpers import until

CHANNELS = {
    "/color_image#sensor_msgs.Image": "",
    "/scan#sensor_msgs.LaserScan": "",
    "/odom#nav_msgs.Odometry": "",
    "/detections#vision_msgs.Detection2DArray": "",
    "/level#std_msgs.Float32": "",
    "/note#std_msgs.String": "",
    "/odd#kitchen_msgs.Kettle": "",
    "/robot1/odom#nav_msgs.Odometry": "robot1",
    "/robot2/odom#nav_msgs.Odometry": "robot2",
}


@dataclass(frozen=True)
class SeenFrame:
    """A frame, taken apart."""

    header: dict[str, Any]
    payload: bytes

    @classmethod
    def of(cls, frame: bytes) -> SeenFrame:
        (length,) = struct.unpack_from("<I", frame)
        return cls(json.loads(frame[4 : 4 + length]), frame[4 + length :])


@dataclass
class LiveSocket:
    """A client of ``WS /live``."""

    connection: ClientConnection
    acknowledges: bool = True
    texts: list[dict[str, Any]] = field(default_factory=list)
    frames: list[SeenFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for message in self.connection:
                if isinstance(message, str):
                    self.texts.append(json.loads(message))
                    continue
                frame = SeenFrame.of(message)
                self.frames.append(frame)
                if self.acknowledges:
                    await self.see(frame.header["topic"])

    async def watch(self, *topics: str, **requests: Mapping[str, Any]) -> None:
        await self.send({"watch": {**{topic: {} for topic in topics}, **requests}})

    async def see(self, topic: str) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self.send({"seen": topic})

    async def send(self, request: Any) -> None:
        await self.connection.send(request if isinstance(request, (str, bytes)) else json.dumps(request))

    def of(self, topic: str) -> list[SeenFrame]:
        return [frame for frame in self.frames if frame.header["topic"] == topic]

    def said(self, type: str) -> list[dict[str, Any]]:
        return [text for text in self.texts if text["type"] == type]

    async def close(self) -> None:
        await self.connection.close()
        await self.task


def at(scene: Scene, query: str = "") -> str:
    return f"{scene.bridge.url.replace('http', 'ws')}/live{query}"


@contextlib.asynccontextmanager
async def topics(**config: Any) -> AsyncIterator[Scene]:
    """A bridge of a run with ``CHANNELS``."""
    made = Scene(**config)
    made.channels = dict(CHANNELS)
    await made.inner.open()
    try:
        await made.start_bridge()
        yield made
    finally:
        await made.close()


@contextlib.asynccontextmanager
async def looking(
    scene: Scene, *watched: str, query: str = "", acknowledges: bool = True, **options: Any
) -> AsyncIterator[LiveSocket]:
    """Somebody who watches these topics already."""
    made = LiveSocket(await connect(at(scene, query), max_size=None, **options), acknowledges)
    try:
        await until(lambda: made.said("topics"))
        if watched:
            await made.watch(*watched)
            await until(lambda: all(subscribed(scene, topic) for topic in watched))
        yield made
    finally:
        await made.close()


def subscribed(scene: Scene, topic: str) -> bool:
    return bool(scene.bridge.live.topic(topic).watched)


def publish(scene: Scene, topic: str, message: Message) -> bytes:
    """Publish as a module would."""
    data = encode(message)
    scene.inner.publish(channel_name(topic, type(message)), data)
    return data


async def sent_until(send: Callable[[], object], condition: Callable[[], object]) -> None:
    """Publish again and again."""

    def sent() -> object:
        send()
        return condition()

    await until(sent)


def picture(encoding: str = "jpeg", width: int = 32, height: int = 24, *, utime: int = 5_000_000) -> Image:
    import numpy as np

    shades = np.linspace(0, 255, width * height * 3, dtype=np.uint8).reshape(height, width, 3)
    if encoding in ("mono16", "16UC1"):
        return image_from_array(shades[..., 0].astype(np.uint16) * 20, encoding, header("camera", utime))
    if encoding == "mono8":
        return image_from_array(shades[..., 0].copy(), encoding, header("camera", utime))
    return image_from_array(shades, encoding, header("camera", utime))
