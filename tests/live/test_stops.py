"""Parts of a running mission that are stopped for seconds and go on (SIGSTOP, SIGCONT) end in a true state."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from dimos_streams.module import LOSS_BOUND_S
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.helpers import until
from tests.live.mission import Mission, running
from tests.live.promises import check_journal, check_reader, read_journal
from tests.live.test_rounds import follow, stop

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

STOPPED_S = 2.5


def close_of(mission: Mission, call_id: str) -> ToolEvent | None:
    return next((e for e in mission.events if e.call_id == call_id and e.type == "close"), None)


async def suspend(mission: Mission, *parts: str, for_s: float = STOPPED_S) -> None:
    """Stop processes for some seconds."""
    for part in parts:
        mission.kill(part, signal.SIGSTOP)
    await asyncio.sleep(for_s)
    for part in parts:
        mission.kill(part, signal.SIGCONT)


async def bridge(mission: Mission) -> None:
    """Nobody misses it for so long: the follow goes on, and what it said in the meantime is there."""
    call_id = await follow(mission)
    before = len(mission.events)
    await suspend(mission, "bridge", for_s=0.6 * LOSS_BOUND_S)
    await until(lambda: sum(e.call_id == call_id for e in mission.events[before:]) > 5)
    await until(lambda: mission.process("bridge").state == "ready")
    assert close_of(mission, call_id) is None
    await stop(mission)


async def skills(mission: Mission) -> None:
    """They count as dead meanwhile; afterwards they hear that their calls were given up."""
    call_id = await follow(mission)
    moment = mission.kill("skills", signal.SIGSTOP)
    assert await mission.lost_after(call_id, moment) <= 2.0
    close = close_of(mission, call_id)
    await until(lambda: mission.still_since(moment) is not None)
    still = mission.still_since(moment)
    assert still is not None
    assert still <= 0.5
    mission.kill("skills", signal.SIGCONT)
    assert (await mission.drive("turn", angle_deg=30)).outcome is Outcome.COMPLETED
    await stop(mission)
    assert mission.process("skills").restarts == 0
    assert [e for e in mission.events if e.call_id == call_id][-1] is close, "nothing follows a close"


async def agent(mission: Mission) -> None:
    """Its missions are given up, and what they began ends when it hears of that."""
    call_id = await follow(mission)
    await suspend(mission, "agent")
    await until(lambda: close_of(mission, call_id) is not None)
    says = [e for e in mission.events if e.skill == "say" and e.type == "close"]
    assert says[-1].outcome is Outcome.LOST
    await until(lambda: mission.speeds[-1][1] < 0.05)
    await stop(mission)


async def all_at_once(mission: Mission) -> None:
    """As if the machine had slept: no call counts as lost, because nobody was there to miss it."""
    call_id = await follow(mission)
    await suspend(mission, "skills", "robot", "gate", "perception", "agent", "bridge")
    await stop(mission)
    await until(lambda: close_of(mission, call_id) is not None)
    close = close_of(mission, call_id)
    assert close is not None
    assert close.outcome is not Outcome.LOST


def test_parts_that_are_stopped_for_seconds(bus_url: str, free_port: int, tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(85), running(bus_url, free_port, tmp_path) as mission:
            for scenario in (bridge, skills, agent, all_at_once):
                await scenario(mission)
            journal = await read_journal(mission.gateway)
            await until(lambda: mission.events[-1] == journal[-1])
            check_journal(journal)
            check_reader(mission.events, journal)

    asyncio.run(main())
