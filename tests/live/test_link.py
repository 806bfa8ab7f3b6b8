"""The link between skills and bridge is cut while the robot follows somebody; its own half hears each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.testing import FaultBus, Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from tests.helpers import until
from tests.live.mission import Mission, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

LINK = frozenset({CALLS, CANCELS, EVENTS, REQUESTS, STATUS})


@dataclass(frozen=True)
class Link:
    """For ``RunOptions.wrap_bus``: while a file exists, nothing of calls gets to or from the skills."""

    cut: Path

    def __call__(self, bus: Bus, label: str) -> Bus:
        if label != "skills":
            return bus
        faults = Faults(loss=1.0, affects=self.is_cut)
        return FaultBus(bus, faults, seed=0, arriving=faults)

    def is_cut(self, channel: str) -> bool:
        return channel in LINK and self.cut.exists()


@pytest.mark.feature("F5")
def test_a_cut_link_stops_the_robot(bus_url: str, free_port: int, tmp_path: Path) -> None:
    cut = tmp_path / "cut"

    async def scenario(mission: Mission) -> None:
        follow = await mission.follow()

        before = len(mission.texts_of(follow))
        cut.touch()
        await asyncio.sleep(1.0)  # shorter than it takes to give a module up
        cut.unlink()
        await until(lambda: len(mission.texts_of(follow)) > before + 3)
        seqs = [event.seq for event in mission.events if event.call_id == follow]
        assert seqs == list(range(1, len(seqs) + 1)), "a short cut loses nothing"
        await until(lambda: mission.speeds[-1][1] > 0.2)

        moment = clock.monotonic()
        cut.touch()
        assert await mission.lost_after(follow, moment) <= 2.0
        await asyncio.sleep(moment + 3.2 - clock.monotonic())  # it does not begin to move again
        still = mission.still_since(moment)
        assert still is not None
        assert still <= 3.0

        cut.unlink()
        turned = await mission.drive("turn", angle_deg=30)
        assert turned.outcome is Outcome.COMPLETED
        (view,) = [call for call in await mission.gateway.calls() if call.call_id == follow]
        assert view.outcome is Outcome.LOST
        assert not [call for call in await mission.gateway.calls(open_only=True) if call.skill == "follow_person"]

    async def main() -> None:
        async with asyncio.timeout(60), running(bus_url, free_port, tmp_path, wrap_bus=Link(cut)) as mission:
            await scenario(mission)

    asyncio.run(main())
