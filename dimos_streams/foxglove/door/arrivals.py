"""Orders arrive as they were sent: the SDK runs each one in a thread of its own, and threads overtake each other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from collections.abc import Awaitable, Callable

_CALL = 2
"""The first byte of what asks for a service, in Foxglove's protocol."""
_HEAD = struct.Struct("<BIII")
"""That byte, the service, the call, and the length of the encoding's name, which follows."""
_MARK = struct.Struct("<BQ")
"""The number before an order's payload, behind a byte with which no JSON begins."""
_ENCODING = b"json"
_WITHIN_S = 0.5
"""Seconds within which an order arrives, unless the SDK refuses it without asking anybody."""


HasLeft = Callable[[], bool]
"""Whether a viewer has left."""


def stays() -> bool:
    """Return False, as the ``HasLeft`` of a viewer of whom nothing is known."""
    return False


class Arrivals:
    """Holds back what a viewer sends behind an order until that has arrived. Use from the loop only."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._expected: dict[int, tuple[asyncio.Event, HasLeft]] = {}

    async def forward(
        self, message: bytes, write: Callable[[bytes], Awaitable[None]], has_left: HasLeft = stays
    ) -> None:
        """Have an order written to the SDK, with a number, and wait until it has arrived."""
        at = _payload_at(message)
        number = next(self._numbers)
        arrived = asyncio.Event()
        self._expected[number] = arrived, has_left
        try:
            await write(message[:at] + _MARK.pack(0, number) + message[at:])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WITHIN_S):
                    await arrived.wait()
        finally:
            del self._expected[number]

    def note(self, number: int) -> HasLeft:
        """An order has arrived; return what says whether its viewer has left since it was read."""
        arrived, has_left = self._expected.get(number, (None, stays))
        if arrived is not None:
            arrived.set()
        return has_left


def split_number(payload: bytes) -> tuple[int, bytes]:
    """Return the number of an order and its payload as the viewer sent it; 0 for one that came in several frames."""
    if len(payload) < _MARK.size or payload[0]:
        return 0, payload
    return _MARK.unpack_from(payload)[1], payload[_MARK.size :]


def is_order(message: bytes) -> bool:
    """Return whether a viewer's message is an order, and none that the SDK refuses by itself."""
    if len(message) < _HEAD.size or message[0] != _CALL:
        return False
    return message[_HEAD.size : _payload_at(message)] == _ENCODING


def _payload_at(order: bytes) -> int:
    """Return where the payload of an order begins."""
    length: int = _HEAD.unpack_from(order)[3]
    return _HEAD.size + length
