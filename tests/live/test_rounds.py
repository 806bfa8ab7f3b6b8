"""kill -9 of each part of a running mission in turn, for ``DIMOS_STREAMS_KILL_ROUNDS`` rounds, and how long it took.

By hand, with ``--log-cli-level=INFO``: ten rounds take about five minutes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live.mission import INPUT, Mission, running
from tests.live.promises import check_conversation, check_journal, check_reader, read_journal

ROUNDS = int(os.environ.get("DIMOS_STREAMS_KILL_ROUNDS", "0"))

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(60 + 60 * ROUNDS),
    pytest.mark.skipif(ROUNDS < 1, reason="by hand: set DIMOS_STREAMS_KILL_ROUNDS"),
]

_logger = logging.getLogger(__name__)


async def follow(mission: Mission) -> str:
    """Have the agent follow somebody once more; the id of the call, once the robot drives."""
    # The supervisor knows earlier than the bridge that a process is back.
    async with asyncio.timeout(40):
        while not all(skill.available for skill in await mission.gateway.skills()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    seen = {event.call_id for event in mission.events}
    await mission.gateway.call("say", {"text": INPUT}, caller="operator")

    def followed() -> list[str]:
        new = (e for e in mission.events if e.call_id not in seen and e.skill == "follow_person")
        return [event.call_id for event in new if event.type == "update"]

    await until(followed, 30)
    await until(lambda: mission.speeds[-1][1] > 0.2, 30)
    return followed()[0]


async def stop(mission: Mission) -> None:
    assert (await mission.call("say", text="stop")).outcome is Outcome.COMPLETED
    await until(lambda: mission.speeds[-1][1] < 0.05)


async def kill_commander(mission: Mission, times: int) -> tuple[float, float]:
    """Seconds until the call is lost, and until the robot stands."""
    call_id = await follow(mission)
    moment = mission.kill("skills")
    lost_s = await mission.lost_after(call_id, moment)
    await until(lambda: mission.still_since(moment) is not None)
    still_s = mission.still_since(moment)
    assert still_s is not None
    await mission.until_restarted("skills", times)
    return lost_s, still_s


async def kill_other(mission: Mission, part: str, times: int) -> None:
    """A part that does not command: the follow goes on, or ends in a true state."""
    await follow(mission)
    mission.kill(part)
    await mission.until_restarted(part, times)
    await stop(mission)


def test_ten_rounds(bus_url: str, free_port: int, tmp_path: Path) -> None:
    times: list[tuple[float, float]] = []

    async def main() -> None:
        async with running(bus_url, free_port, tmp_path) as mission:
            for number in range(1, ROUNDS + 1):
                times.append(await kill_commander(mission, number))
                _logger.info("round %d: lost after %.2f s, still after %.2f s", number, *times[-1])
                for part in ("gate", "perception", "robot", "bridge", "agent"):
                    await kill_other(mission, part, number)
            journal = await read_journal(mission.gateway)
            await until(lambda: mission.events[-1] == journal[-1])
            check_journal(journal)
            check_reader(mission.events, journal)
            _logger.info("%d events, %d calls in conversations", len(journal), check_conversation(journal))

    asyncio.run(main())
    assert max(lost_s for lost_s, _ in times) <= 2.0
    assert max(still_s for _, still_s in times) <= 0.5
