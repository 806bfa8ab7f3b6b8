"""A process whose loop does not run is distinguished from a dead one, and ends in a true state all the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live.mission import Mission, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(150)]

_SPECS = (
    ModuleSpec(name="sleeper", type="tests.live.modules:Sleeper"),
    ModuleSpec(name="mover", type="tests.live.modules:Mover", restart="never"),
    ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge"),
)
SLEEPY = Blueprint(name="sleepy", modules={spec.name: spec for spec in _SPECS})


async def block(mission: Mission, pipe: Path) -> tuple[str, float]:
    """Make the sleeper hang until the pipe is opened; the call's id and the loop time at which it began to."""
    call_id = await mission.gateway.call("block", {"pipe": str(pipe)}, caller="operator")
    await until(lambda: "blocks" in mission.texts_of(call_id))
    return call_id, clock.monotonic()


async def until_health(mission: Mission, module: str, begins: str) -> None:
    async with asyncio.timeout(30):
        while not (await mission.health(module)).startswith(begins):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.feature("F5")
def test_a_skill_that_blocks_its_loop(bus_url: str, free_port: int, tmp_path: Path) -> None:
    run_dir = tmp_path / "1-hanging"
    run_dir.mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    log = run_dir / "logs" / "sleeper.log"

    def stacks() -> list[str]:
        return [line for line in log.read_text().splitlines() if "the loop of this process does not run" in line]

    async def scenario(mission: Mission) -> None:
        call_id, began = await block(mission, pipe)
        await until_health(mission, "sleeper", "hung: the loop has not run for")
        assert await mission.lost_after(call_id, began) <= 2.0
        assert mission.process("sleeper").state == "hung"
        assert (await mission.call("move")).outcome is Outcome.COMPLETED, "the lease is free"
        await until(lambda: stacks() != [])
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

        await until_health(mission, "sleeper", "ok")
        kinds = ["hung", "recovered"]
        await until(lambda: [e.kind for e in mission.run_events if e.process == "sleeper"][-2:] == kinds)
        assert mission.process("sleeper").restarts == 0
        cancelled: list[str] = []
        while call_id not in cancelled:
            cancelled = (await mission.call("cancelled_calls")).result
        mine = [e for e in mission.events if e.call_id == call_id]
        assert [e.type for e in mine] == ["open", "update", "close"], "what it says after its close is ignored"
        assert mine[-1].outcome is Outcome.LOST
        assert "'sleeper' is hung" in mine[-1].text
        assert mine[-1].text.endswith(" s; `dimos-streams logs hanging --process sleeper` shows where")
        (where,) = stacks()
        assert "does not run; its thread is at os.close(os.open(pipe, os.O_RDONLY))" in where
        assert where.endswith(" in Sleeper.block): what blocks belongs in a thread, `await self.run_blocking(f, …)`")

        call_id, _ = await block(mission, pipe)
        await mission.until_restarted("sleeper")
        assert any(e.kind == "restarting" and "hung for" in e.text for e in mission.run_events)
        assert (await mission.call("cancelled_calls")).result == []
        assert (await mission.call("move")).outcome is Outcome.COMPLETED

        mission.kill("mover")
        await until_health(mission, "mover", "gone: its process ended by SIGKILL")

    async def main() -> None:
        async with asyncio.timeout(120), running(bus_url, free_port, run_dir, SLEEPY, hang_bound_s=5.0) as mission:
            await scenario(mission)

    asyncio.run(main())
