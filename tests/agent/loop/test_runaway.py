"""A mission whose model goes on by itself ends; one that goes at the world's pace lives."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.missions.limits import LANGUAGE_MODEL
from dimos_streams.agent.models.protocol import ModelRequest, ToolResultMessage
from dimos_streams.agent.policies.repetition import RepetitionSettings
from dimos_streams.agent.policies.runaway import RunawayGuard
from dimos_streams.blueprint.load import resolve
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import offered
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import run_virtual


class Restless:
    """A model that answers the end of each call with the next call, for ever; each turn is a short one."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = itertools.cycle(calls)

    def __call__(self, request: ModelRequest) -> Answer:
        waits = isinstance(request.messages[-1], ToolResultMessage)
        return says("I wait") if waits else asks(next(self._calls))


def pursuing(lasts_s: float) -> tuple[LineWorld, list[float]]:
    """A world whose ``follow`` answers at once, and ends after a while."""
    world, begun = LineWorld(), []

    async def follow(call: Any) -> str:
        begun.append(asyncio.get_running_loop().time())
        call.send("update", "following")
        await asyncio.sleep(lasts_s)
        return "she has left"

    world.bridge.bodies["follow"] = (offered("follow"), follow)
    return world, begun


@pytest.mark.slow
@pytest.mark.feature("D4", "D2")
@pytest.mark.parametrize(
    ("calls", "reason", "at_most"),
    [
        ([("follow", {})], "repetition", 18),
        ([("follow", {"who": "a"}), ("follow", {"who": "b"})], "repetition", 36),
        ([("follow", {"n": n}) for n in range(1000)], "max_actions", 101),
    ],
    ids=["the same", "to and fro", "ever new"],
)
@pytest.mark.virtual_time
async def test_a_model_that_answers_each_end_with_a_new_call_is_ended(
    calls: list[tuple[str, dict[str, Any]]], reason: str, at_most: int
) -> None:
    world, begun = pursuing(0.1)
    limits = {"actions": LANGUAGE_MODEL.actions}
    async with world.with_model(FunctionModel(Restless(*calls)), limits=limits) as agent:
        mission = await agent.over(await agent.say("go"), 60)
        assert mission.reason == reason
        assert len(begun) <= at_most
        assert not agent.core.calls.known.open
        assert "the mission was ended" in mission.why or "too fast" in mission.why
        # New words are a new mission.
        await agent.say("go on")
        count = len(begun)
        await asyncio.sleep(1)
        assert len(begun) > count


@pytest.mark.feature("D4")
@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_patrol_of_an_hour_lives() -> None:
    world, begun = pursuing(8.0)
    calls = [("follow", {"who": "a"}), ("follow", {"who": "b"})]
    async with world.with_model(FunctionModel(Restless(*calls)), limits={"actions": 25}) as agent:
        agent.model.keep = False
        mission = await agent.say("patrol")
        await asyncio.sleep(3600)
        assert not mission.over
        assert len(begun) > 425


@pytest.mark.virtual_time
async def test_polling_does_not_count_and_input_begins_anew() -> None:
    guard = RunawayGuard(RepetitionSettings(), 3, 3600)
    looks: list[tuple[str, dict[str, Any]]] = [("look", {})]
    assert [guard.observe(looks, frozenset({"look"})) for _ in range(50)] == [None] * 50
    numbers = itertools.count()
    walks = [guard.observe([("walk", {"n": next(numbers)})]) for _ in range(4)]
    assert [each and each[0] for each in walks] == [None, None, None, "max_actions"]
    await asyncio.sleep(2)
    assert guard.observe([("walk", {"n": -1})]) is None
    guard = RunawayGuard(RepetitionSettings(), 3, 3600)
    assert [guard.observe([("walk", {"n": next(numbers)})]) for _ in range(3)] == [None] * 3


def test_a_long_rest_saves_no_more_actions_than_there_are_at_first() -> None:
    guard = RunawayGuard(RepetitionSettings(), 3, 3600)
    walks = [guard.observe([("walk", {"n": n})], at=at) for n, at in enumerate([0.0, *[86_400.0] * 4])]
    assert [each and each[0] for each in walks] == [None, None, None, None, "max_actions"]


def test_what_is_repeated_at_the_worlds_pace_is_no_repetition() -> None:
    guard = RunawayGuard(RepetitionSettings(), None, 0.0)
    assert [guard.observe([("walk", {})], at=86_400.0 * day) for day in range(50)] == [None] * 50


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_surplus_calls_of_an_answer_are_not_run() -> None:
    world = LineWorld()
    answers = iter([asks(*[("drop", {"n": n}) for n in range(50)]), says("ok")])
    async with world.with_model(FunctionModel(lambda _: next(answers)), limits={"calls_per_answer": 8}) as agent:
        mission = await agent.over(await agent.say("go"))
        assert mission.reason == "completed"
        results = agent.data("result")
        assert len(results) == 50
        assert [result["is_error"] for result in results] == [False] * 8 + [True] * 42
        assert "an answer may ask for 8 calls at most" in results[8]["text"]
        assert world.log == ["drop"] * 8


@pytest.mark.feature("B8", "D2")
def test_bounds_suit_the_model_also_one_that_is_set_later(tmp_path: Any) -> None:
    async def main() -> None:
        (tmp_path / "s.json").write_text('{"turns": []}')
        agent = AgentInMemory(LineWorld().bridge, FunctionModel(lambda _: says("")))
        core = agent.core
        assert core.model.limits.deadline_s is None
        assert "create_plan" not in {tool.name for tool in core.loop.parts.toolbox.local.schemas()}
        core.model_switch.use(f"scripted:{tmp_path}/s.json")
        settings = core.model.limits
        assert (settings.calls_per_answer, settings.actions, settings.deadline_s) == (8, 100, 28800)
        assert settings.max_tokens is None, "a script has no server that bills tokens, and none are estimated for it"
        assert "create_plan" in {tool.name for tool in core.loop.parts.toolbox.local.schemas()}
        core.model_switch.use("offline")
        assert core.model.limits.max_tokens is None

    run_virtual(main())
    own = AgentConfig(model="openai:m", limits={"deadline_s": None, "max_tokens": 7})  # type: ignore[arg-type]
    assert own.loop_limits().deadline_s is None
    assert own.loop_limits().max_tokens == 7
    assert own.model_limits("openai:m").motions == 2


@pytest.mark.feature("B8", "D2")
@pytest.mark.parametrize("name", ["agent-openai", "follow-person", "two-robots"])
def test_stock_blueprints_bound_a_language_model(name: str) -> None:
    for spec in resolve(name).modules.values():
        if "agent.module" not in spec.type:
            continue
        config = AgentConfig.model_validate({**spec.config, "model": "openai:m"})
        settings = config.loop_limits()
        assert config.model_limits("openai:m").motions == LANGUAGE_MODEL.motions
        assert None not in (settings.calls_per_answer, settings.actions, settings.deadline_s, settings.max_tokens)
