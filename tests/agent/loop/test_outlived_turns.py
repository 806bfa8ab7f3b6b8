"""Nothing of a turn goes on behind its end: no call beside one that failed, nobody who swallows a cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dimos_streams.agent.models.protocol import Finish, ModelDelta, ModelError, ModelRequest, TextDelta
from dimos_streams.agent.policies.gates.base import CallRequest, Reviewer, Verdict
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld

STOPPED = "[I have stopped: enough. This order is over.]"


class Cancelled:
    """Waits for something that was cancelled elsewhere, the first time; asks somebody who takes a while later."""

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reviewer, name)

    async def review(self, request: CallRequest) -> Verdict:
        self._asked += 1
        if self._asked == 1:
            elsewhere = asyncio.get_running_loop().create_future()
            elsewhere.cancel()
            await elsewhere
        await asyncio.sleep(5)
        return await self._reviewer.review(request)


@pytest.mark.feature("D1")
@pytest.mark.virtual_time
async def test_calls_beside_one_that_ends_the_turn_with_an_error_do_not_begin_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LineWorld()
    async with world.agent(asks(*[("look", {"for_s": n}) for n in (1, 2, 3)])) as agent:
        toolbox = agent.core.loop.parts.toolbox
        object.__setattr__(toolbox, "reviewer", Cancelled(toolbox.reviewer))
        mission = await agent.over(await agent.say("look around"))
        assert mission.reason == "error"
        await asyncio.sleep(30)
        assert world.bridge.calls_ == {}
        assert agent.kinds("delta")[-1] == "done"
    assert "the agent's loop has a bug" in caplog.text


class Deaf(FunctionModel):
    """Swallows its cancellation, and answers all the same, or fails."""

    def __init__(self, late: Answer | ModelError) -> None:
        super().__init__(lambda request: says("at your service"))
        self._late: Answer | ModelError | None = late

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        late, self._late = self._late, None
        if late is not None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                await asyncio.sleep(20)
            if isinstance(late, ModelError):
                raise late
            for delta in late:
                yield delta
            return
        yield TextDelta("I th")
        await asyncio.sleep(60)
        yield TextDelta("ink")
        yield Finish("stop")


@pytest.mark.feature("B5")
@pytest.mark.parametrize(
    "late",
    [asks(("move", {"by": 1}), ("look", {})), says("a long story"), ModelError("overloaded")],
    ids=["calls", "an answer", "an error"],
)
@pytest.mark.virtual_time
async def test_a_model_that_swallows_its_cancellation_says_nothing_into_the_next_turn(
    late: Answer | ModelError, caplog: pytest.LogCaptureFixture
) -> None:
    world, model = LineWorld(), Deaf(late)
    async with world.with_model(model) as agent:
        await agent.say("tell")
        await asyncio.sleep(1)
        await agent.core.loop.abort("enough")
        with caplog.at_level(logging.ERROR):
            mission = await agent.over(await agent.say("again"))
        assert (mission.reason, mission.text) == ("completed", "I think")
        assert world.bridge.calls_ == {}
        assert agent.data("error") == []
        assert [answer["text"] for answer in agent.data("answer")] == [STOPPED, "[noted]", "I think"]
