"""The last console goes while the agent's process is dead: the policy is followed all the same."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams.agent.control.console_watch import RETURN_BOUND_S, ConsoleWatch
from dimos_streams.agent.control.control import Control, Mode
from dimos_streams.agent.module import Agent
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.base import Allow
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.module import RunContext
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.policies.gate_bench import GateBench
from tests.agent.test_restarts import restart_world
from tests.helpers import until


class Killed:
    """An agent that follows somebody, with consoles that come and go, and its successor."""

    def __init__(self, folder: Path, policy: str) -> None:
        self.world = LineWorld()
        self.folder = folder
        self.line = Line(self.world.bridge)
        self.config = {"plan": {"motions": None}, "approval": {"on_console_loss": policy}}

    def die(self) -> None:
        """What is on the disk now stays, and nothing that the process does from now on has any effect."""
        shutil.copytree(self.folder / "before", self.folder / "after")
        self.line.cut()

    def agent(self, folder: str, line: Line | None = None) -> AgentInMemory:
        model = FunctionModel(in_turn(asks(("follow", {})), says("I follow")))
        return AgentInMemory(self.world.bridge, model, self.config, record_dir=self.folder / folder, line=line)

    @contextlib.asynccontextmanager
    async def before(self) -> AsyncIterator[AgentInMemory]:
        """The one that is to ``die``."""
        agent = self.agent("before", self.line)
        await agent.__aenter__()
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["follow"])
        yield agent
        await agent.leave()

    @contextlib.asynccontextmanager
    async def after(self) -> AsyncIterator[AgentInMemory]:
        """Its successor."""
        async with self.agent("after") as agent:
            assert agent.core.memory.before is not None
            going_on = asyncio.create_task(
                agent.core.operators.console.go_on(agent.core.memory.before.settings.watched)
            )
            yield agent
            going_on.cancel()
            await asyncio.wait([going_on])


def stands(agent: AgentInMemory) -> tuple[Mode, int, int]:
    return agent.core.control.mode, len(agent.core.loop.missions), len(agent.core.calls.known.open)


LOST = {"continue": (Mode.RUNNING, 1, 1), "hold": (Mode.PAUSED, 1, 1), "abort": (Mode.RUNNING, 0, 0)}
NOT_LOST = (Mode.RUNNING, 1, 1)


@pytest.mark.feature("B10", "C7")
@pytest.mark.parametrize("policy", LOST)
@pytest.mark.virtual_time
async def test_a_console_that_does_not_come_back_is_lost(tmp_path: Path, policy: str) -> None:
    killed = Killed(tmp_path, policy)
    async with killed.before() as first:
        with first.core.operators.console.watching():
            killed.die()
    async with killed.after() as second:
        await asyncio.sleep(RETURN_BOUND_S - 0.1)
        assert stands(second) == NOT_LOST
        await asyncio.sleep(5)
        assert stands(second) == LOST[policy]


@pytest.mark.feature("B10", "C7")
@pytest.mark.parametrize("policy", LOST)
@pytest.mark.virtual_time
async def test_one_that_comes_back_in_time_is_not(tmp_path: Path, policy: str) -> None:
    killed = Killed(tmp_path, policy)
    async with killed.before() as first:
        with first.core.operators.console.watching():
            killed.die()
    async with killed.after() as second:
        await asyncio.sleep(RETURN_BOUND_S - 0.1)
        with second.core.operators.console.watching():
            await asyncio.sleep(60)
            assert stands(second) == NOT_LOST
        await asyncio.sleep(5)
        assert stands(second) == LOST[policy]


@pytest.mark.feature("B10", "C7")
@pytest.mark.parametrize("watched_before", [False, True])
@pytest.mark.virtual_time
async def test_a_restart_is_no_loss_where_nobody_watched(tmp_path: Path, watched_before: bool) -> None:
    """Nor where the operator has gone on after it: a policy is followed once for each loss."""
    killed = Killed(tmp_path, "hold")
    async with killed.before() as first:
        if watched_before:
            with first.core.operators.console.watching():
                pass
            assert first.core.control.resume()
        killed.die()
    async with killed.after() as second:
        await asyncio.sleep(60)
        assert stands(second) == NOT_LOST


@pytest.mark.feature("B10", "C7")
@pytest.mark.virtual_time
async def test_nobody_is_asked_after_a_restart_who_was_not_there_before(tmp_path: Path) -> None:
    killed = Killed(tmp_path, "abort")
    async with killed.before() as first:
        with first.core.operators.console.watching():
            pass
        killed.die()
    async with killed.after() as second:
        await asyncio.sleep(1)
        async with asyncio.timeout(1):
            decision = await second.core.gate_state.approvals.ask("drop", {})
        assert (decision.approved, decision.reason) == (False, "no operator's console is connected")


@pytest.mark.feature("B10", "C7")
@pytest.mark.virtual_time
async def test_an_agent_that_is_begun_again_waits_for_its_console(tmp_path: Path) -> None:
    def agent(folder: str) -> Agent:
        context = RunContext(services=w.context.services, run_dir=tmp_path / folder)
        return Agent({"approval": {"on_console_loss": "hold"}}, name="agent", context=context)

    async with restart_world() as w:
        await w.start(w.bridge())
        await w.start(agent("before"))
        while not any(skill.name == "report" for skill in await w.gateway.skills()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await w.gateway.call("report", {}, caller="monitor")
        await until(lambda: list(tmp_path.glob("before/missions/agent.general.jsonl")))
        shutil.copytree(tmp_path / "before", tmp_path / "after")
        await w.end("agent")
        second = agent("after")
        await w.start(second)
        await asyncio.sleep(RETURN_BOUND_S - 0.1)
        assert not second.core.control.paused
        await asyncio.sleep(1)
        assert second.core.control.mode is Mode.PAUSED


@pytest.mark.virtual_time
async def test_the_loss_of_a_console_that_came_before_the_record_was_read_is_noted() -> None:
    emit, control = (events := EventLog("a")).emit, Control(EventLog("a").emit)
    approvals = ApprovalRegistry(ApprovalSettings(on_console_loss="hold"), emit)
    watch = ConsoleWatch(approvals, control, emit, lambda why: None)
    with watch.watching():
        await watch.go_on(present=False)
    noted = [event.data["present"] for event in events.after(0) if event.kind == "console"]
    assert (noted, control.paused) == ([True, False], True)


def watched(policy: str, aborted: list[str]) -> tuple[GateBench, Control, ConsoleWatch]:
    bench = GateBench(approval={"on_console_loss": policy})
    control = Control(bench.events.emit)
    return bench, control, ConsoleWatch(bench.approvals, control, bench.events.emit, aborted.append)


@pytest.mark.parametrize("policy", ["hold", "abort"])
@pytest.mark.virtual_time
async def test_a_console_that_goes_while_another_is_there_is_no_loss(policy: str) -> None:
    aborted: list[str] = []
    _, control, watch = watched(policy, aborted)
    with watch.watching():
        with watch.watching():
            pass
        assert (control.paused, aborted) == (False, [])
    assert control.paused is (policy == "hold")
    assert len(aborted) == (policy == "abort")


@pytest.mark.virtual_time
async def test_a_console_that_is_there_already_counts_whatever_the_record_says() -> None:
    bench, _, watch = watched("abort", [])
    with watch.watching():
        await watch.go_on(False)
        asking = asyncio.create_task(bench.review("drop", {"approval": "ask"}))
        await until(bench.approvals.pending)
        bench.approvals.decide(bench.approvals.pending()[0].id, "approve")
        assert isinstance(await asking, Allow)
