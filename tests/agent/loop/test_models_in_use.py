"""Another model from the next answer on: who asks it, and what becomes of the one before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.agent.models.protocol import ModelRequest, TokenUsage
from tests.agent.loop.function_model import Answer, FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

AGENTS = {"helper": {"description": "does things", "prompt": "helper"}}


class CountedModel(FunctionModel):
    """Notes whether it was closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_sub_agent_at_work_asks_the_new_model_too(tmp_path: Path) -> None:
    script = tmp_path / "model.json"
    script.write_text('{"turns": [{"text": "the helper is done"}, {"text": "all done"}]}')
    world = LineWorld()
    delegates = asks(("delegate", {"agent": "helper", "task": "go on"}))
    first = FunctionModel(in_turn(delegates, asks(("move", {"by": 1})), says("of the old model")))
    async with world.with_model(first, agents=AGENTS) as agent:
        mission = await agent.say("go")
        await until(lambda: world.log == ["move 1"])
        agent.core.model_switch.use(f"scripted:{script}")
        assert (await agent.over(mission)).text == "all done"
        assert len(first.requests) == 2
        assert "helper: the helper is done" in [data["text"] for data in agent.data("result")]


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_a_model_that_was_replaced_ends_its_answer_and_is_closed() -> None:
    delay_s = [0.0]

    def answer(request: ModelRequest) -> Answer:
        return says("said by the old one")

    old = CountedModel(answer, lambda: delay_s[0])
    async with LineWorld().with_model(old) as agent:
        delay_s[0] = 2.0
        mission = await agent.say("go")
        await asyncio.sleep(1)
        agent.core.model_switch.use("offline")
        await agent.core.model_switch.close_replaced()
        assert not old.closed, "its answer is on its way"
        assert (await agent.over(mission)).text == "said by the old one"
        await agent.core.model_switch.close_replaced()
        assert old.closed
        last = CountedModel(answer)
        agent.core.model.adapter = last
        agent.core.model_switch.use("offline")
    assert last.closed, "with the agent, if not before"


def spends(request: ModelRequest) -> Answer:
    """Look, once more each time, for many tokens."""
    look = asks(("look", {"n": len(request.messages)}))
    return [TokenUsage(400_000, 5) if isinstance(delta, TokenUsage) else delta for delta in look]


@pytest.mark.feature("D2", "E6")
@pytest.mark.parametrize("when", ["from the beginning", "while it works"])
@pytest.mark.virtual_time
async def test_a_sub_agent_has_the_bounds_of_the_model_that_it_asks(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"model": "openai:large"} if when == "from the beginning" else {}
    world, large = LineWorld(), FunctionModel(spends)
    delegates = asks(("delegate", {"agent": "helper", "task": "go on"}))
    first = FunctionModel(in_turn(delegates, asks(("move", {"by": 1})), says("done")))
    async with world.with_model(first, agents={"helper": {**AGENTS["helper"], **own}}) as agent:
        monkeypatch.setattr(agent.core.models, "make", lambda spec: large)
        mission = await agent.say("go")
        if when == "while it works":
            await until(lambda: world.log == ["move 1"])
            agent.core.model_switch.use("openai:large")
        await agent.over(mission, 600)
        assert mission.reason == "max_tokens"
        most = agent.core.config.loop_limits("openai:large").max_tokens
        assert most is not None
        assert mission.spent.tokens < most + 2 * 400_005


@pytest.mark.feature("D8", "E6")
@pytest.mark.virtual_time
async def test_each_model_that_reports_no_usage_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = FunctionModel(lambda request: [delta for delta in says("hello") if not isinstance(delta, TokenUsage)])
    async with LineWorld().with_model(silent, limits={"max_tokens": 90_000}) as agent:
        for expected in (1, 1):
            await agent.over(await agent.say("go"))
            assert sum("reports no usage" in data["text"] for data in agent.data("note")) == expected
        monkeypatch.setattr(agent.core.models, "make", lambda spec: silent)
        agent.core.model_switch.use("openai:other")
        for expected in (2, 2):
            await agent.over(await agent.say("go"))
            assert sum("reports no usage" in data["text"] for data in agent.data("note")) == expected
