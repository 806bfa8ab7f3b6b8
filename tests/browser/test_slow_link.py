"""A page behind a slow network shows what is newest, and neither it nor the bridge gathers what is late."""

from __future__ import annotations

import json
import logging
import struct
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, WebSocket, expect

from tests.browser.growth import Growth
from tests.browser.rover import Rover, rover
from tests.browser.waiting import until

pytestmark = pytest.mark.feature("I1")
_PICTURES = "/color_image"
_SLOW = {"offline": False, "latency": 100, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
"""Milliseconds, and bytes per second: an eighth of what the robot has to show."""
_SETTLES, _LOOKED_AT = 8, 12
"""Pictures."""
_LATEST_S = 3.0
_MAY_GROW_BYTES = 1_500_000
_log = logging.getLogger(__name__)


class Arrivals:
    """What has come over a page's socket of live topics, and how old it was when the page was done with it."""

    def __init__(self, page: Page) -> None:
        self.ages: list[float] = []
        self.dropped: dict[str, int] = {}
        self.most_waiting = 0
        self._newest: dict[str, int] = {}
        self._waiting: Counter[str] = Counter()
        page.on("websocket", self._on_socket)

    def _on_socket(self, socket: WebSocket) -> None:
        if socket.url.endswith("/live"):
            socket.on("framereceived", self._came)
            socket.on("framesent", self._went)

    def _came(self, data: str | bytes) -> None:
        if isinstance(data, str):
            return
        header = json.loads(data[4 : 4 + struct.unpack_from("<I", data)[0]])
        self._newest[header["topic"]] = header["utime"]
        self._waiting[header["topic"]] += 1
        self.most_waiting = max(self.most_waiting, *self._waiting.values())
        self.dropped[header["topic"]] = header["dropped"]

    def _went(self, data: str | bytes) -> None:
        topic = json.loads(data).get("seen")
        if topic is None:
            return
        self._waiting[topic] -= 1
        if topic == _PICTURES:
            self.ages.append(time.time() - self._newest[topic] / 1e6)


@pytest.fixture
def robot(browser: object) -> Iterator[Rover]:
    with rover() as made:
        yield made


def test_behind_a_slow_network_the_newest_frame_wins_and_nothing_piles_up(robot: Rover, page: Page) -> None:
    arrivals = Arrivals(page)
    page.goto(robot.url)
    until(page, lambda: len(arrivals.ages) > 5)
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", _SLOW)
    growth, seen = Growth(page), len(arrivals.ages)
    until(page, lambda: len(arrivals.ages) > seen + _SETTLES)
    before, dropped = growth.now(), arrivals.dropped[_PICTURES]
    until(page, lambda: len(arrivals.ages) > seen + _SETTLES + _LOOKED_AT)
    ages = arrivals.ages[seen + _SETTLES :]
    now = growth.now()
    passed_over = arrivals.dropped[_PICTURES] - dropped
    _log.info("%d passed over, %.2f to %.2f s old, %s", passed_over, min(ages), max(ages), now)
    assert min(ages) > _SLOW["latency"] / 1000, "it is slow"
    assert max(ages) < _LATEST_S, ages
    assert arrivals.most_waiting == 1, "the next one is sent when this one is drawn"
    assert passed_over > 0
    assert now.heap < before.heap + _MAY_GROW_BYTES
    robot.say("move 1")
    expect(page.get_by_role("article", name="Call of move")).to_contain_text("completed")
