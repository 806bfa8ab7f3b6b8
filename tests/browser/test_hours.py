"""The page works after hours, and after very much, as at the beginning."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator

import pytest
import requests
from playwright.sync_api import Page, Route

from dimos_streams import clock
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.monitor.monitor import Monitor
from dimos_streams.module import RunContext, Services
from tests.bridge.serving import Served, served
from tests.browser.busy_robot import BusyRobot
from tests.browser.growth import Growth

HOURS = int(os.environ.get("DIMOS_STREAMS_DASHBOARD_HOURS", "1"))
HOUR_S = 3600
LASTS_S = 6.0
"""So long the hour takes here."""
EVENTS = 10_000
MAY_GROW_BYTES = 1_500_000
MORE = 2
"""So often it is looked again: what is held at one moment is let go at another, and what grows has grown on."""
MAX_NODES, MAX_LISTENERS = 9_000, 500
"""Lists are full at their own times, after hours with about half as many."""
_TIMELINE = ("{ calls: 4000, ticks: 40_000,", "{ calls: 100, ticks: 1_000,")
_log = logging.getLogger(__name__)


@pytest.fixture
def quick_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the run an hour is over in seconds: its clock goes so fast, and so often it looks at its state."""
    begin, before = time.time_ns() // 1000, time.monotonic()
    quick = HOUR_S / LASTS_S
    monkeypatch.setattr(clock, "utime", lambda: begin + int((time.monotonic() - before) * quick * 1e6))
    monkeypatch.setitem(Monitor.__init__.__kwdefaults__ or {}, "state_every_s", 0.05)


@pytest.fixture
def busy(quick_time: None) -> Iterator[Served]:
    """A bridge, a robot that does very much, and an agent that has it do so."""
    with served() as made:
        made.run(made.scene.add(BusyRobot(name="robot")))
        context = RunContext(services=Services(), bridge_url=made.url)
        made.run(made.scene.add(Agent({}, name="agent", context=context)))
        made.run(made.scene.offered("say"))
        yield made


@pytest.mark.feature("I1")
@pytest.mark.timeout(120)
def test_after_an_hour_and_ten_thousand_events_it_is_as_large_as_before(busy: Served, page: Page) -> None:
    page.clock.install()
    page.route("**/page.js", _remembers_less)
    page.goto(busy.url)
    growth = Growth(page)
    _live_through(busy, page, EVENTS // 2, LASTS_S / 2)
    half = growth.now()
    _log.info("after half an hour %s", half)
    for hour in range(1, HOURS + MORE + 1):
        _live_through(busy, page, hour * EVENTS, LASTS_S / 2)
        whole = growth.now()
        _log.info("after %d h %s", hour, whole)
        if hour >= HOURS and whole.heap < half.heap + MAY_GROW_BYTES:
            break
    assert whole.heap < half.heap + MAY_GROW_BYTES
    assert whole.nodes < MAX_NODES
    assert whole.listeners < MAX_LISTENERS
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()


def _remembers_less(route: Route) -> None:
    """The timeline's bounds are for days; here they are reached in seconds."""
    response = requests.get(route.request.url, timeout=10)
    assert _TIMELINE[0] in response.text
    route.fulfill(headers=dict(response.headers), body=response.text.replace(*_TIMELINE))


def _live_through(busy: Served, page: Page, offset: int, seconds: float) -> None:
    """Have the robot do things, one after the other, until so many events have happened and so long has passed."""
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds or busy.run(busy.broker.offset()) < offset:
        busy.post("/calls", {"skill": "say", "arguments": {"text": f"move {1 + done % 3}"}, "caller": "test"})
        page.clock.fast_forward(100)
        done += 1
