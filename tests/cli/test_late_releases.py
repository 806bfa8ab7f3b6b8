"""A release that somebody in between holds up."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.bridge_client.robot_orders import OrderTarget, give
from tests.bridge.serving import served
from tests.middleman import middleman


@pytest.mark.slow
@pytest.mark.feature("K5")
def test_a_release_that_comes_late_undoes_no_newer_stop() -> None:
    with served() as bridge, middleman(bridge.url) as between, ThreadPoolExecutor(1) as pool:
        bridge.post("/robots/stop", {"reason": "first"})
        between.holds = "/robots/release"
        to = [OrderTarget("run", BridgeAddress(between.url, None))]
        late = pool.submit(asyncio.run, give("/robots/release", "", "", to))
        assert between.held.wait(20)
        bridge.post("/robots/stop", {"reason": "second"})
        between.let_go.set()
        (refused,) = late.result()
        assert not refused.done
        assert re.match(r"NOT done: every robot was stopped \d+ s ago \(second; first\), after what", refused.text)
        assert [stop.reason for stop in bridge.broker.stops.stopped().stops] == ["second; first"]
        (done,) = asyncio.run(give("/robots/release", "", "", to))
        assert (done.done, bridge.broker.stops.stopped().stops) == (True, ())
