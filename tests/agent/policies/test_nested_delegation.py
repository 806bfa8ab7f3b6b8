"""Sub-agents within sub-agents: who hears the operator, what an operator's end of a mission means for them, and what
stops them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.agent.missions.stop_conditions import Progress
from dimos_streams.agent.models.protocol import ModelRequest
from tests.agent.policies.parts import Answer, Brain, robot_stage
from tests.agent.policies.test_delegation import AGENTS, delegating, times_shown
from tests.helpers import until

INNER: dict[str, Any] = {**AGENTS, "inner": {"description": "follows", "prompt": "inner", "skills": ["follow"]}}
TIRED: list[str] = []


def tired(progress: Progress) -> str | None:
    """The robot is tired once a model has found that out."""
    return TIRED[0] if TIRED else None


@pytest.mark.virtual_time
async def test_the_operator_speaks_to_the_innermost_that_works() -> None:
    brain = Brain(
        delegating("helper", "have Ann followed"),
        "over",
        helper=[delegating("inner", "follow Ann"), "done"],
        inner=[[("follow", {"who": "Ann"})], "waiting", "yes sir", "end"],
    )
    async with robot_stage(brain, agents=INNER) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 4)
        assert (await (await made.say("hurry")).result())["text"] == "yes sir"
        assert times_shown(brain, "inner", "hurry") == 1
        robot.done.set()
        assert (await first.result())["text"] == "over"


@pytest.mark.virtual_time
async def test_input_that_is_withdrawn_while_who_works_thinks_about_it_is_no_order_any_more() -> None:
    async def slowly(request: ModelRequest) -> str:
        await asyncio.sleep(1.0)
        return "I see"

    helper: list[Answer] = [[("follow", {"who": "Ann"})], "waiting", slowly, "end"]
    brain = Brain(delegating("helper", "follow Ann"), "over", helper=helper)
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        second = await made.say("and Bob")
        await until(lambda: len(brain.requests) == 4)
        second.cancel()
        await second.closed()
        await asyncio.sleep(2.0)
        robot.done.set()
        await first.closed()
        assert times_shown(brain, "helper", "Withdrawn, so nothing is to be done about it any more: and Bob") == 1


@pytest.mark.virtual_time
async def test_what_stops_an_agent_stops_its_sub_agents() -> None:
    def walks(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        TIRED.append("tired")
        return [("walk", {"distance_m": 2})]

    helper: list[Answer] = [[("walk", {"distance_m": 1})], walks, [("walk", {"distance_m": 3})], "walked"]
    brain = Brain(delegating("helper", "walk"), "over", helper=helper)
    conditions = {"conditions": [f"{__name__}:tired"]}
    try:
        async with robot_stage(brain, agents=AGENTS, stop_when=conditions) as (made, robot):
            await (await made.say("go")).closed()
            assert robot.log_ == ["walk 1"]
    finally:
        TIRED.clear()
