"""A call of which nothing has run leaves nothing to take back: no robot goes back from where it has not gone."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.control.undo_log import may_have_run
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import asks, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

pytestmark = [pytest.mark.feature("B5"), pytest.mark.virtual_time]

MOVE = asks(("move", {"by": 1}))


def end_before_it_runs(agent: AgentInMemory) -> None:
    """Have each call end between its beginning and the first step of its skill."""

    def cancel() -> None:
        for call in agent.bridge.calls_.values():
            if call.task is not None:
                call.task.cancel()

    def refuse(skill: str) -> bool:
        asyncio.get_running_loop().call_soon(cancel)
        return False

    agent.bridge.refuse = refuse


@pytest.mark.parametrize("rejected", [False, True])
async def test_neither_undo_nor_rollback_takes_back_what_never_ran(rejected: bool) -> None:
    world = LineWorld()
    async with world.agent(MOVE, says("done")) as agent:
        if rejected:
            agent.bridge.lose = lambda skill: "rejected"
        else:
            end_before_it_runs(agent)
        await agent.over(await agent.say("go"))
        agent.bridge.lose, agent.bridge.refuse = lambda skill: "", lambda skill: False
        assert len(agent.bridge.calls_) == 1
        assert await agent.core.loop.undo(5) == []
        assert world.log == []


async def test_a_call_that_waits_for_its_module_is_ended_and_nothing_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = LineWorld()

    async def end(call_id: str, reason: str) -> None:
        call = world.bridge.calls_[call_id]
        world.bridge._close(call, Outcome.CANCELLED, reason, not_run=True)

    monkeypatch.setattr(world.bridge, "cancel", end)
    async with world.agent(asks(("slow", {"for_s": 100})), says("done"), answer_timeout_s=0.1) as agent:
        await agent.say("go")
        await until(lambda: agent.core.calls.known.open and agent.core.loop.state is LoopState.IDLE)
        (undone,) = await agent.core.loop.undo(1)
        assert (undone.how, undone.text) == ("undone", "it was ended before anything of it ran")
        assert len(agent.bridge.calls_) == 1


@pytest.mark.parametrize("data", [{"outcome": "rejected"}, {"outcome": "cancelled", "not_run": True}])
def test_a_call_that_has_reported_something_has_run_whatever_its_module_says_of_it(data: dict[str, object]) -> None:
    """A module in another language may say so of a call that has moved the robot."""

    def close(seq: int) -> ToolEvent:
        return ToolEvent(
            utime=1,
            call_id="c",
            seq=seq,
            type="close",
            module="legs",
            skill="move",
            caller="agent",
            text="",
            data=data,
        )

    assert [may_have_run(close(seq)) for seq in (2, 3)] == [False, True]
