"""By which names skills are called; and an agent's name is nobody else's, also while the agent hangs and the bridge
starts again."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from dimos_streams.errors import CallRejectedError, SkillUnavailableError, UnknownSkillError
from dimos_streams.module import Module, RunContext
from dimos_streams.skill import skill
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Worker, closed, scene


class Reviewer(Module):
    """Is an agent, by its skill for reviews."""

    @skill(audience="bridge")
    async def review_call(self) -> None:
        """Look at nothing."""

    @skill(audience="operator")
    async def pause(self) -> None:
        """Hold nothing."""


@pytest.mark.parametrize("knows_of_it", ["its blueprint", "an earlier call"])
@pytest.mark.virtual_time
async def test_the_name_of_an_agent_that_hangs_is_not_free_when_the_bridge_starts_again(
    knows_of_it: str, tmp_path: Path
) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        agent = await world.add(Reviewer(name="agent"))
        await world.offered("review_call")
        if knows_of_it == "its blueprint":
            world.agents = frozenset({"agent"})
        else:
            await world.broker.call("count", {"label": "a", "to": 1}, caller="agent", idempotency_key="agent/1")
        agent.bus.partitioned = True
        await world.kill_bridge()
        await world.start_bridge()
        await world.offered("follow")
        assert world.broker.directory.module("agent") is None
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await world.broker.call("count", {"label": "a", "to": 1}, caller="agent")
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await world.broker.settings.change(["worker.pace=2"], "agent")


@pytest.mark.virtual_time
async def test_who_calls_what_nobody_offers_is_told_the_names_that_are_listed() -> None:
    async with scene() as world:
        await world.add(Reviewer(name="agent"))
        await world.offered("review_call")
        listed = sorted(each.name for each in await world.broker.skills())
        with pytest.raises(UnknownSkillError, match=re.escape(f"(offered: {', '.join(listed)})")):
            await world.broker.call("nope", {}, caller="somebody")


@pytest.mark.parametrize(
    ("caller", "why"),
    [
        ("agent ", "^caller is 'agent '; valid: 1 to 200 letters of ASCII, digits and"),
        ("agent\n", r"^caller is 'agent\\n'; valid"),
        ("\uff41gent", "^caller is .*; valid"),
        ("Agent", "^'Agent' looks like 'agent', which is not you: call by a name of your own"),
        ("CLI", "'CLI' looks like 'cli'"),
        ("Bridge", "'Bridge' looks like 'bridge'"),
        ("agent.", r"^'agent\.' looks like 'agent', which is not you"),
        ("./agent", "looks like 'agent'"),
        ("/Agent", "looks like 'agent'"),
        ("agent/", "looks like 'agent'"),
        ("cli-", "'cli-' looks like 'cli'"),
        ("mcp", "'mcp' looks like 'mcp/'"),
        ("bridge:", "'bridge:' looks like 'bridge'"),
        ("MCP/claude", "'MCP/claude' looks like 'mcp/claude'"),
    ],
)
@pytest.mark.feature("F6")
@pytest.mark.virtual_time
async def test_nobody_calls_by_a_name_that_looks_like_another_ones(caller: str, why: str, tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        await world.add(Reviewer(name="agent"))
        await world.offered("review_call")
        await world.offered("at_once")
        with pytest.raises(CallRejectedError, match=why):
            await world.broker.call("at_once", {"value": 1}, caller=caller)
        with pytest.raises(CallRejectedError, match=why):
            await world.broker.settings.change(["worker.pace=2"], caller)
        own = await world.broker.call("at_once", {"value": 1}, caller="Ann@shop-2/Agent.1")
        assert (await closed(world.broker, own)).outcome == Outcome.COMPLETED


@pytest.mark.virtual_time
async def test_an_absolute_name_calls_the_skill_of_its_namespace_though_no_skill_asks_for_it(tmp_path: Path) -> None:
    async with scene(worker=False, journal=tmp_path / "journal.sqlite") as world:
        for name in ("a", "d"):
            await world.add(Worker(name=f"{name}/worker", context=RunContext(namespace=f"{name}/")))
            await world.offered(f"{name}_at_once")

        async def ask(skill: str) -> str:
            return await world.broker.call(skill, {"value": 1}, caller="me", idempotency_key="once")

        call_id = await ask("/d/at_once")
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.skill, view.module) == (Outcome.COMPLETED, "d_at_once", "d/worker")
        assert await ask("d_at_once") == call_id
        await world.kill_bridge()
        await world.start_bridge()
        assert await ask("/d/at_once") == call_id, "the journal has it by its public name"


@pytest.mark.feature("F6")
@pytest.mark.parametrize("name", ["cli", "operator"])
@pytest.mark.virtual_time
async def test_nobody_takes_an_operators_name_by_being_an_agent(name: str, tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        await world.add(Reviewer(name=name))
        await world.offered("review_call")
        await world.offered("at_once")
        own = await world.broker.call("at_once", {"value": 1}, caller=name)
        assert (await closed(world.broker, own)).outcome == Outcome.COMPLETED


@pytest.mark.virtual_time
async def test_who_can_not_reach_an_agent_is_told_what_needs_none(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        agent = await world.add(Reviewer(name="agent"))
        await world.offered("pause")
        agent.bus.partitioned = True
        await asyncio.sleep(5)
        with pytest.raises(SkillUnavailableError, match=r"'agent' is gone.*; `stop-robot` needs no agent$"):
            await world.broker.call("pause", {}, caller="cli")
