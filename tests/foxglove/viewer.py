"""A viewer that speaks Foxglove's protocol with nothing but a WebSocket."""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

SUBPROTOCOL = Subprotocol("foxglove.sdk.v1")
_MESSAGE, _CALL, _ANSWER = 1, 2, 3


class Viewer:
    """The messages that one connection has received."""

    def __init__(self, connection: ClientConnection) -> None:
        self.channels: dict[str, dict[str, Any]] = {}
        """By topic, as they were advertised."""
        self.services: dict[str, dict[str, Any]] = {}
        self.info: dict[str, Any] = {}
        self.seen: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        """Messages by topic, each with its time in ns."""
        self.complaints: list[str] = []
        """What the server says of what it can't do."""
        self._connection = connection
        self._topics: dict[int, str] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()

    async def subscribe(self, *topics: str) -> None:
        """Have messages of topics from now on, as soon as they are advertised."""
        for topic in topics:
            await self.until(lambda topic=topic: topic in self.channels)  # type: ignore[misc]
            number = next(self._numbers)
            self._topics[number] = topic
            asked = {"id": number, "channelId": self.channels[topic]["id"]}
            await self.say(json.dumps({"op": "subscribe", "subscriptions": [asked]}))

    async def unsubscribe(self, topic: str) -> None:
        number = next(number for number, name in self._topics.items() if name == topic)
        await self.say(json.dumps({"op": "unsubscribe", "subscriptionIds": [number]}))

    async def call(self, service: str, request: Any, *, encoding: str = "json") -> dict[str, Any]:
        """The answer of a service; of one that has failed what the server says, with its ``message``."""
        await self.until(lambda: service in self.services)
        number = next(self._numbers)
        payload = request if isinstance(request, bytes) else json.dumps(request).encode()
        head = struct.pack("<BIII", _CALL, self.services[service]["id"], number, len(encoding))
        await self._connection.send(head + encoding.encode() + payload)
        await self.until(lambda: number in self._answers)
        return self._answers.pop(number)

    async def say(self, text: str) -> None:
        await self._connection.send(text)

    async def first(self, topic: str, *, after: int = 0) -> dict[str, Any]:
        """A message of a topic, the first behind so many."""
        await self.until(lambda: len(self.seen.get(topic, ())) > after)
        return self.seen[topic][after][1]

    async def until(self, holds: Callable[[], bool], timeout_s: float = 20.0) -> None:
        async with asyncio.timeout(timeout_s):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def listen(self) -> None:
        async for frame in self._connection:
            if isinstance(frame, str):
                self._take(json.loads(frame))
            elif frame[0] == _MESSAGE:
                number, nanoseconds = struct.unpack_from("<IQ", frame, 1)
                self.seen.setdefault(self._topics[number], []).append((nanoseconds, json.loads(frame[13:])))
            elif frame[0] == _ANSWER:
                _, number, length = struct.unpack_from("<III", frame, 1)
                self._answers[number] = json.loads(frame[13 + length :])
            self._changed.set()

    def _take(self, message: dict[str, Any]) -> None:
        match message["op"]:
            case "serverInfo":
                self.info = message
            case "advertise":
                self.channels |= {channel["topic"]: channel for channel in message["channels"]}
            case "advertiseServices":
                self.services |= {service["name"]: service for service in message["services"]}
            case "status":
                self.complaints.append(message["message"])
            case "serviceCallFailure":
                self._answers[message["callId"]] = message


@asynccontextmanager
async def viewing(url: str, **options: Any) -> AsyncIterator[Viewer]:
    """A viewer that is connected."""
    async with connect(url, subprotocols=[SUBPROTOCOL], max_size=None, proxy=None, **options) as connection:
        viewer = Viewer(connection)
        listening = asyncio.create_task(viewer.listen())
        try:
            await viewer.until(lambda: bool(viewer.info))
            yield viewer
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
