"""A viewer that takes nothing is sent nothing, as far as it is known what it has asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from dimos_streams.foxglove.door import subscriptions as subscriptions_module
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.door.subscriptions import Subscriptions

pytestmark = [pytest.mark.feature("I2"), pytest.mark.virtual_time]


class Sdk:
    """What the SDK has got."""

    def __init__(self) -> None:
        self.got = b""

    def write(self, data: bytes) -> None:
        self.got += data

    async def drain(self) -> None:
        """Take everything at once."""


def masked(first: int, payload: bytes) -> bytes:
    """A viewer's frame, whose mask changes nothing."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2)
    return bytes([first]) + length + bytes(4) + payload


def subscribe(*numbers: int) -> tuple[int, bytes]:
    asked = [{"id": number, "channelId": number + 10} for number in numbers]
    return 0x81, json.dumps({"op": "subscribe", "subscriptions": asked}).encode()


def unsubscribe(*numbers: int) -> tuple[int, bytes]:
    return 0x81, json.dumps({"op": "unsubscribe", "subscriptionIds": numbers}).encode()


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ([subscribe(1, 2)], [1, 2]),
        ([subscribe(1, 2), unsubscribe(1)], [2]),
        ([subscribe(1, 2), unsubscribe(1, 2)], None),
        ([subscribe(1, 2, 3, 4)], None),
        ([subscribe(1, 2, 3, 4), unsubscribe(3, 4)], None),
        ([subscribe(1), (0x01, b'{"op": "sub'), (0x80, b'scribe"}')], None),
    ],
    ids=["two", "one of two", "none", "too many to follow", "too many before", "in a message in parts"],
)
async def test_a_viewer_is_paused_only_while_all_that_it_wants_is_known(
    said: list[tuple[int, bytes]], wanted: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions_module, "_MOST", 3)
    sdk, reader = Sdk(), asyncio.StreamReader()
    made = Subscriptions(cast(Any, sdk), 10.0, Arrivals())
    for first, payload in said:
        reader.feed_data(masked(first, payload))
    reader.feed_eof()
    await made.forward(reader)
    sdk.got = b""
    made.pause()
    assert made.paused is (wanted is not None)
    if wanted is not None:
        assert json.dumps({"op": "unsubscribe", "subscriptionIds": wanted}).encode() in sdk.got
