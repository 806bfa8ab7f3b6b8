"""The page works after hours, and after very much, as at the beginning."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests
from playwright.sync_api import Page, Route

from dimos_streams import clock
from dimos_streams.bridge.monitor.monitor import Monitor
from tests.browser.growth import Growth, Occupied, Pictures
from tests.browser.rover import Rover, rover
from tests.helpers import wait_for

HOURS = int(os.environ.get("DIMOS_STREAMS_DASHBOARD_HOURS", "1"))
HOUR_S = 3600
LASTS_S = 6.0
"""So long the hour takes here."""
EVENTS = 10_000
MAX_OPEN = 20
"""Nobody says more before the agent has done most of what was said: on a slow machine it would all be late."""
PICTURES = 100
"""Seen at the least, with as many scans."""
MAY_GROW_BYTES = 1_500_000
MAY_GROW_BUFFERS_BYTES = 200_000
MAX_PICTURES = 2
"""The one that is shown, and the next one."""
MORE = 2
"""So often it is looked again: what is held at one moment is let go at another, and what grows has grown on."""
MAX_NODES, MAX_LISTENERS = 9_000, 500
"""Lists are full at their own times, after hours with about half as many. All are full in half the hours."""
_QUICK = {
    "{ calls: 4000, ticks: 40_000,": "{ calls: 100, ticks: 1_000,",
    "MAX_SERIES = 64;": "MAX_SERIES = 16;",
    "MAX_HZ = 15;": "MAX_HZ = 100;",
    "{ odometry: 15, scan: 10, detections: 10,": "{ odometry: 100, scan: 100, detections: 100,",
}
"""The bounds of the timeline and of plots, and how often pictures and what is on the map are wanted."""
_log = logging.getLogger(__name__)


@pytest.fixture
def quick_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the run an hour is over in seconds: its clock goes so fast, and so often it looks at its state."""
    begin, before = time.time_ns() // 1000, time.monotonic()
    quick = HOUR_S / LASTS_S
    monkeypatch.setattr(clock, "utime", lambda: begin + int((time.monotonic() - before) * quick * 1e6))
    monkeypatch.setitem(Monitor.__init__.__kwdefaults__ or {}, "state_every_s", 0.05)


@pytest.fixture
def busy(browser: object, quick_time: None) -> Iterator[Rover]:
    """A robot that does very much, and an agent that has it do so."""
    with rover() as made:
        made.robot.pause_s = 0.1
        yield made


@pytest.mark.feature("I1")
@pytest.mark.timeout(240)
def test_after_an_hour_with_ten_thousand_events_and_much_to_see_it_is_as_large_as_before(
    busy: Rover, page: Page
) -> None:
    page.clock.install()
    page.route("**/page.js", _lives_quickly)
    watched = Watched(busy, page, Pictures(page))
    page.goto(busy.url)
    growth = Growth(page)
    watched.live_through(HOURS / 2)
    looks = [growth.now()]
    _log.info("after %s h %s", HOURS / 2, looks[0])
    for hour in range(1 + HOURS // 2, HOURS + MORE + 1):
        watched.live_through(hour)
        looks.append(growth.now())
        _log.info("after %d h %s, %d pictures seen", hour, looks[-1], watched.pictures.made)
        if hour >= HOURS and _has_grown(looks) == "":
            break
    assert _has_grown(looks) == ""
    assert watched.pictures.open <= MAX_PICTURES
    assert looks[-1].nodes < MAX_NODES
    assert looks[-1].listeners < MAX_LISTENERS
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()


def _has_grown(looks: list[Occupied]) -> str:
    """What is larger than it may be."""
    heap, buffers = looks[-1].heap - looks[0].heap, looks[-1].buffers - looks[0].buffers
    if heap < MAY_GROW_BYTES and buffers < MAY_GROW_BUFFERS_BYTES:
        return ""
    return f"heap by {heap} bytes, buffers by {buffers}"


def _lives_quickly(route: Route) -> None:
    """What takes the page days and hours takes it seconds."""
    response = requests.get(route.request.url, timeout=10)
    text = response.text
    for plain, quick in _QUICK.items():
        assert text.count(plain) == 1, plain
        text = text.replace(plain, quick)
    route.fulfill(headers=dict(response.headers), body=text)


@dataclass(frozen=True)
class Watched:
    """A robot, and the page that looks at it."""

    robot: Rover
    page: Page
    pictures: Pictures

    def live_through(self, hours: float) -> None:
        """Have the robot do things, one after the other, until so much has happened since it began, and been seen."""
        began = time.monotonic()
        while time.monotonic() - began < LASTS_S / 2 or not self._has_lived(hours):
            wait_for(lambda: self.robot.open_calls() <= MAX_OPEN, timeout_s=30)
            for distance in range(1, 6):
                self.robot.say(f"move {distance}")
            self.page.clock.fast_forward(500)

    def _has_lived(self, hours: float) -> bool:
        bridge = self.robot.bridge
        return bridge.run(bridge.broker.offset()) >= hours * EVENTS and self.pictures.made >= hours * PICTURES
