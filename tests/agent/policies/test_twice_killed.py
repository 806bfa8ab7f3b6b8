"""A sub-agent's list holds for what its calls go on with, however often the agent is killed meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.module import Module
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.skill import Call, skill
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import LookoutWorld, lookout_world, round_with
from tests.agent.stage import NoConfig
from tests.helpers import until

pytestmark = [pytest.mark.feature("A9", "B10"), pytest.mark.virtual_time]

DELEGATE = [("delegate", {"agent": "scout", "task": "look"})]
CONFIG: dict[str, Any] = {
    "agents": {"scout": {"description": "waits", "prompt": "scout", "skills": ["round", "wait"]}}
}


class Waiter(Module):
    """Waits for the test, says so, waits again, and walks."""

    config: NoConfig

    async def start(self) -> None:
        """See ``Module``."""
        self.told, self.over = asyncio.Event(), asyncio.Event()

    @skill
    async def wait(self, call: Call) -> str:
        """Wait, and walk."""
        await call.update("waiting")
        await self.told.wait()
        await call.update("waiting still")
        await self.over.wait()
        return await call.skills.start("walk", {})


async def killed(w: LookoutWorld, run_dir: Path) -> None:
    """Kill the agent, and wait until the next one has taken over what runs."""
    await w.kill_agent(Brain(), run_dir, **CONFIG)
    await asyncio.sleep(5)  # for the bridge to believe that this is the agent now
    await until(lambda: "wait" in {call.skill for call in w.agent.core.calls.known.open})


async def test_of_a_call_whose_beginning_a_killed_agent_did_not_record(tmp_path: Path) -> None:
    first, second, waiter = tmp_path / "first", tmp_path / "second", Waiter(name="waiter")
    async with lookout_world(Brain(DELEGATE, scout=[round_with("wait")]), waiter, run_dir=first, **CONFIG) as w:

        def hear(event: AgentEvent) -> None:
            if event.kind == "call_open" and event.data["skill"] == "round":
                shutil.copytree(first, second)

        w.agent.core.events.listen(hear)
        await w.say()
        await w.looking("wait")
        await killed(w, second)
        waiter.told.set()
        await until(lambda: any("waiting still" in str(event.data.get("text")) for event in w.events))
        await killed(w, tmp_path / "third")
        waiter.over.set()
        assert "'walk' is none of your skills" in (await w.lookout_closed("wait")).text
        assert w.robot.log_ == []
