"""The messages of a viewer, read on their way to the SDK. A viewer that reads nothing is unsubscribed for a while,
since the SDK encodes as much for it as for one that reads; and orders are handed on in the order in which they were
sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.foxglove.door.arrivals import Arrivals, HasLeft, is_order, stays
from dimos_streams.foxglove.door.websocket_frames import ClientFrame, binary_frame, read_client_frame, text_frame

_MOST = 1000
"""The largest number of subscriptions that are followed: a viewer with more is sent everything always."""
_LONGEST = 64 * 1024
"""The longest text that is read; a viewer who sends a longer one, which may be a subscription, is sent everything
always. ``_MOST`` subscriptions take half of it."""
_CHUNK = 64 * 1024
_PIECE = 256
"""The bytes of a frame that count as another frame: each subscription in it keeps the SDK as busy as a frame does."""
_AT_ONCE, _PER_S = 1000.0, 200.0
"""Frames that a viewer may send at once, and those that may follow: more than any viewer has to say."""


class Subscriptions:
    """Forwards what a viewer sends to the SDK; between two frames they can be unsubscribed, and subscribed again."""

    def __init__(
        self, to_sdk: asyncio.StreamWriter, within_s: float, arrivals: Arrivals, has_left: HasLeft = stays
    ) -> None:
        """Make them; ``within_s`` is the time for which the SDK may take nothing, and ``has_left`` returns whether
        the viewer has left."""
        self._to_sdk = to_sdk
        self._arrivals = arrivals
        self._has_left = has_left
        self._within_s = within_s
        self._channels: dict[int, int] = {}
        """The channels that the viewer wants, by the viewer's own numbers."""
        self._is_known = True
        self._is_between = True
        self._credit, self._looked = _AT_ONCE, 0.0
        self.paused = False

    async def forward(self, reader: asyncio.StreamReader) -> None:
        """Forward frames until the viewer ends. Raises ``TimeoutError`` where the SDK takes nothing,
        ``asyncio.IncompleteReadError`` for a frame without an end, ``ConnectionError`` for a viewer who keeps the SDK
        from all others."""
        while (frame := await read_client_frame(reader)) is not None:
            self._count(1)
            if frame.is_whole_text and frame.length <= _LONGEST:
                payload = await reader.readexactly(frame.length)
                self._count(frame.length / _PIECE)
                if not (self._note(frame.unmasked(payload)) and self.paused):
                    self._to_sdk.write(frame.head + payload)
                await self._drain()
            elif frame.is_whole_binary and frame.length <= _LONGEST:
                payload = await reader.readexactly(frame.length)
                self._count(frame.length / _PIECE)
                if is_order(message := frame.unmasked(payload)):
                    await self._arrivals.forward(message, self._write_binary, self._has_left)
                else:
                    self._to_sdk.write(frame.head + payload)
                    await self._drain()
            else:
                await self._pass(frame, reader)

    def pause(self) -> None:
        """Unsubscribe from everything, if that can be said now and is known."""
        if self.paused or not self._channels or not (self._is_known and self._is_between):
            return
        self.paused = True
        self._say({"op": "unsubscribe", "subscriptionIds": [*self._channels]})

    def resume(self) -> None:
        """Subscribe again, if that can be said now."""
        if not self.paused or not self._is_between:
            return
        self.paused = False
        asked = [{"id": number, "channelId": channel} for number, channel in self._channels.items()]
        self._say({"op": "subscribe", "subscriptions": asked})

    def _note(self, text: bytes) -> bool:
        """Take note of a text's subscriptions; return whether it subscribes to something, or unsubscribes."""
        try:
            said = parse_json(text)
            match said["op"]:
                case "subscribe":
                    self._channels |= {int(each["id"]): int(each["channelId"]) for each in said["subscriptions"]}
                case "unsubscribe":
                    for number in said["subscriptionIds"]:
                        self._channels.pop(int(number), None)
                case _:
                    return False
        except (ValueError, TypeError, KeyError):
            return False  # the SDK says what is wrong with it
        self._is_known = self._is_known and len(self._channels) <= _MOST
        return True

    async def _pass(self, frame: ClientFrame, reader: asyncio.StreamReader) -> None:
        """Pass on a frame of which only the end needs to be known; within a message nothing else may be said."""
        if frame.is_text:
            self._is_known = False
        is_in_message = not self._is_between
        self._is_between = False
        self._to_sdk.write(frame.head)
        rest = frame.length
        while rest:
            data = await reader.read(min(rest, _CHUNK))
            if not data:
                raise asyncio.IncompleteReadError(b"", rest)
            rest -= len(data)
            self._count(len(data) / _PIECE)
            self._to_sdk.write(data)
            await self._drain()
        self._is_between = not is_in_message if frame.is_control else frame.is_last

    def _count(self, frames: float) -> None:
        """Take frames off what the viewer may send. Raises ``ConnectionError`` if they are more."""
        now = asyncio.get_running_loop().time()
        earned = (now - self._looked) * _PER_S
        self._credit, self._looked = min(_AT_ONCE, self._credit + earned) - frames, now
        if self._credit < 0:
            raise ConnectionError(f"a viewer sends more than {_PER_S:g} frames of {_PIECE} bytes in a second")

    def _say(self, message: dict[str, Any]) -> None:
        self._to_sdk.write(text_frame(json.dumps(message).encode()))

    async def _write_binary(self, payload: bytes) -> None:
        self._to_sdk.write(binary_frame(payload))
        await self._drain()

    async def _drain(self) -> None:
        async with asyncio.timeout(self._within_s):
            await self._to_sdk.drain()
