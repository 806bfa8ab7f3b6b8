"""A bridge, an agent and skills like the stock ones, on one bus."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dimos_streams.agent.context.entry import Entry
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import SkillError
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.skill import Call, skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.testing.harness_call import HarnessCall


class NoConfig(ModuleConfig):
    """Nothing to set."""


class ToySkills(Module):
    """Skills whose doings the test decides: ``sight`` ends a lookout, ``left`` a pursuit."""

    config: NoConfig

    async def start(self) -> None:
        self.sight: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.left = asyncio.Event()
        self.moves: list[float] = []
        self.notes: list[str] = []

    @skill
    async def look_out_for(
        self,
        call: Call,
        descriptions: list[str],
        timeout_s: float = 60.0,
        then: dict[str, Any] | None = None,
    ) -> dict[str, str]:
        """Look out for somebody."""
        await call.update(f"Looking out for {' or '.join(descriptions)}")
        label = await asyncio.wait_for(asyncio.shield(self.sight), timeout_s)
        self.sight = asyncio.get_running_loop().create_future()
        await call.update(f"Found {label}", label=label)
        if then is not None:
            given = {name: label if value == "$label" else value for name, value in then["arguments"].items()}
            await call.skills.start(then["skill"], given)
        return {"label": label}

    @skill(resources={"base"})
    async def follow_person(self, call: Call, description: str, timeout_s: float = 120.0) -> str:
        """Follow somebody."""
        await call.update(f"Following {description}")
        for step in range(3):
            call.progress(f"{step} m")
        await self.left.wait()
        return f"{description} has left"

    @skill
    async def stop_following(self) -> str:
        """Stop following."""
        self.left.set()
        return "stopped following"

    @skill
    async def move(self, distance_m: float) -> str:
        """Move."""
        if abs(distance_m) > 5:
            raise SkillError(f"{distance_m:g} m is too far")
        self.moves.append(distance_m)
        return f"moved {distance_m:g} m"

    @skill
    async def note_down(self, text: str) -> str:
        """Note something down."""
        self.notes.append(text)
        return "noted"

    @skill
    async def think(self, call: Call, seconds: float) -> str:
        """Say nothing for a while."""
        await asyncio.sleep(seconds)
        await call.update("thought")
        return "done thinking"

    @skill
    async def chatter(self, call: Call, count: int, pause_s: float = 0.0) -> int:
        """Say much."""
        for number in range(count):
            await call.update(str(number))
            await asyncio.sleep(pause_s)
        return count


@dataclass
class Stage:
    """The parts that a test can reach."""

    harness: ModuleHarness
    bridge: Bridge
    agent: Agent
    skills: ToySkills

    async def say(self, text: str) -> HarnessCall:
        """Send an operator's input."""
        return await self.harness.call("say", caller="operator", text=text)

    def entries(self, *roles: str) -> list[Entry]:
        """The agent's record, of some roles only if any are given."""
        return [entry for entry in self.agent.conversation.entries if not roles or entry.role in roles]

    async def until(self, role: str, words: str) -> Entry:
        """The first entry of a role that has the words."""
        async with asyncio.timeout(30):
            while True:
                changed = self.agent.conversation.changed
                for entry in self.entries(role):
                    if words in entry.text:
                        return entry
                await changed.wait()


@contextlib.asynccontextmanager
async def stage(
    config: Mapping[str, Any] | None = None,
    *,
    http: bool = False,
    token: str | None = None,
    run_dir: Path | None = None,
) -> AsyncIterator[Stage]:
    """Everything running; with ``http`` the agent has its bridge over HTTP, with ``run_dir`` it records there."""
    context = RunContext(token=token)
    bridge = Bridge({"http": http, "port": 0}, name="bridge", context=context)
    async with ModuleHarness(bridge) as harness:
        skills = ToySkills(name="skills", context=context)
        await harness.add(skills)
        agent_context = RunContext(bridge_url=bridge.url, token=token) if http else context
        agent = Agent(config, name="agent", context=replace(agent_context, run_dir=run_dir))
        await harness.add(agent)
        yield Stage(harness, bridge, agent, skills)
        assert harness.failed() is None


def script(path: Path, *turns: dict[str, Any]) -> dict[str, str]:
    """The config of an agent that plays these turns."""
    path.write_text(json.dumps({"turns": turns}))
    return {"model": f"scripted:{path}"}


def calling(skill_name: str, **arguments: Any) -> dict[str, Any]:
    """A turn that asks for one call."""
    return {"calls": [{"skill": skill_name, "arguments": arguments}]}
