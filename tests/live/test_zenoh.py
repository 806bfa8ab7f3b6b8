"""The stock robot, whole, as processes on Zenoh."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live.mission import running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]


@pytest.mark.feature("G1")
def test_a_robot_follows_on_zenoh_and_one_part_that_dies_is_known_at_once(
    zenoh_url: str, free_port: int, tmp_path: Path
) -> None:
    async def main() -> None:
        async with asyncio.timeout(80), running(zenoh_url, free_port, tmp_path) as mission:
            follow = await mission.follow()
            await until(lambda: len(mission.texts_of(follow)) > 3)
            seqs = [event.seq for event in mission.events if event.call_id == follow]
            assert seqs == list(range(1, len(seqs) + 1))

            moment = mission.kill("skills")
            assert await mission.lost_after(follow, moment) <= 2.0
            (close,) = (event for event in mission.events if event.call_id == follow and event.type == "close")
            # Its successor may be there before its links are given up, or before its supervisor is heard; its silence
            # alone would say so later.
            known = ": its process ended by SIGKILL"
            said = ("is gone: its links have ended", f"is gone{known}", "was started again while the call ran")
            assert close.text.removesuffix(f"ran{known}").endswith((*said, "was started again while the call "))
            await until(lambda: mission.still_since(moment) is not None)
            await mission.until_restarted("skills")
            assert (await mission.drive("turn", angle_deg=30)).outcome is Outcome.COMPLETED

    asyncio.run(main())
