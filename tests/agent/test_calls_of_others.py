"""A stop ends the calls of others, whatever the bridge does meanwhile, and says of none that it has ended before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError, SkillUnavailableError
from dimos_streams.tool_stream.gateway import CallView
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, in_turn
from tests.agent.loop.line_world import LineWorld

pytestmark = [pytest.mark.feature("B5"), pytest.mark.virtual_time]

Refused = Callable[[int, str], bool]


@dataclass(eq=False)
class FaultyLine(Line):
    """A link on which requests fail: which, says a function of how many there were of the kind, and of the call."""

    cancelling: Refused = lambda count, call_id: False
    listing: Refused = lambda count, call_id: False
    requests: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    """The numbers of calls that requests have asked to end."""

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """What fails for one call does so when the others have been asked."""
        self.batches.append(len(call_ids))
        errors: list[SkillUnavailableError] = []
        for call_id in call_ids:
            try:
                self._try("cancel", self.cancelling, call_id)
                await self.bridge.cancel(call_id, reason)
            except SkillUnavailableError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        self._try("calls", self.listing, "")
        return await super().calls(open_only=open_only)

    def _try(self, kind: str, refused: Refused, call_id: str) -> None:
        self.requests.append(kind)
        if refused(self.requests.count(kind), call_id):
            raise SkillUnavailableError(f"no bridge for {kind} {call_id}".strip())


class Scene:
    """An agent that does nothing, and calls of somebody else's."""

    def __init__(self) -> None:
        self.world = LineWorld()
        self.line = FaultyLine(self.world.bridge)

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[AgentInMemory]:
        async with AgentInMemory(self.world.bridge, FunctionModel(in_turn()), line=self.line) as agent:
            try:
                yield agent
            finally:
                self.world.released.set()

    async def begin(self, *skills: str) -> list[str]:
        begin = self.world.bridge.call
        return [await begin(skill, {"for_s": 1000, "n": n}, caller="script") for n, skill in enumerate(skills)]

    async def running(self) -> list[str]:
        return [view.call_id for view in await self.world.bridge.calls(open_only=True)]


async def stopped(agent: AgentInMemory) -> str:
    """What a stop answers; it fails at the least because there is no velocity gate here."""
    began = clock.monotonic()
    with pytest.raises(SkillError) as failed:
        await agent.core.operators.stop_order.carry_out("s1", "stop")
    assert clock.monotonic() - began < agent.core.model.limits.abort_bound_s + 0.2
    return str(failed.value)


async def test_a_call_that_can_not_be_asked_to_end_keeps_no_other_one_running() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        first, second, third = await scene.begin("look", "look", "look")
        scene.line.cancelling = lambda count, call_id: call_id == second
        said = await stopped(agent)
        assert await scene.running() == [second]
        assert said.startswith("stopped: 2 calls ended (also look of script, look of script)")
        assert said.endswith(f"; may still run: {second}; the agent stays paused")
        assert agent.core.control.paused
        assert first != third


async def test_what_could_not_be_asked_at_first_is_asked_again() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        await scene.begin("look", "look", "look")
        scene.line.cancelling = lambda count, call_id: count < 5
        assert "3 calls ended" in await stopped(agent)
        assert await scene.running() == []
        assert not agent.core.control.paused


async def test_a_look_that_fails_is_taken_again_and_no_call_has_ended_by_it() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        looking, deaf = await scene.begin("look", "deaf")
        scene.line.requests.clear()
        scene.line.listing = lambda count, call_id: count in (2, 3)
        said = await stopped(agent)
        assert await scene.running() == [deaf]
        assert said.startswith("stopped: 1 call ended (also look of script)")
        assert f"may still run: {deaf}; the agent stays paused" in said
        assert looking != deaf


async def test_a_crowd_is_ended_by_one_request_and_the_answer_counts_it() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        await scene.begin(*["look"] * 700)
        scene.line.requests.clear()
        said = await stopped(agent)
        assert await scene.running() == []
        assert scene.line.batches == [700]
        assert scene.line.requests.count("calls") == 2, "before and after"
        assert said.startswith("stopped: 700 calls ended (also look of script, ")
        assert ", and 690 more); the robot was " in said


async def test_a_crowd_that_can_not_be_ended_is_counted_as_well() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        await scene.begin(*["deaf"] * 30)
        said = await stopped(agent)
        assert said.startswith("stopped: no call ended; the robot was ")
        assert said.endswith(", and 20 more; the agent stays paused")


@pytest.mark.parametrize("from_look", [1, 2])
async def test_where_it_can_not_be_known_what_runs_the_agent_is_paused(from_look: int) -> None:
    scene = Scene()
    async with scene.agent() as agent:
        (deaf,) = await scene.begin("deaf")
        scene.line.requests.clear()
        scene.line.listing = lambda count, call_id: count >= from_look
        said = await stopped(agent)
        seen = "" if from_look == 1 else f"{deaf}, "
        assert "no call ended" in said, "what ran is not known"
        assert said.endswith(f"; may still run: {seen}calls of others (no bridge for calls); the agent stays paused")
        assert agent.core.control.paused


@pytest.mark.parametrize("after_s", [0.0, 0.3])
async def test_an_agent_that_is_stopped_meanwhile_leaves_nothing_behind(after_s: float) -> None:
    scene = Scene()
    async with scene.agent() as agent:
        await scene.begin("deaf")
        before = asyncio.all_tasks()
        stopping = asyncio.create_task(agent.core.operators.stop_order.carry_out("s1", "stop"))
        await asyncio.sleep(after_s)
        await agent.leave()
        with pytest.raises(SkillError, match="the agent is stopping"):
            await stopping
        await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before


async def test_what_a_bridge_asks_for_itself_is_no_motion_of_others() -> None:
    scene = Scene()
    async with scene.agent() as agent:
        for caller in ("bridge", "bridge:settings", "script"):
            await scene.world.bridge.call("hang", {}, caller=caller)
        assert [view.caller for view in await agent.core.oversight.others.moving()] == ["script"]
