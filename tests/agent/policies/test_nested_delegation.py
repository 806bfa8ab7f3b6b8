"""Sub-agents within sub-agents: who hears the operator, what an operator's end of a mission means for them, and what
stops them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dimos_streams.agent.missions.stop_conditions import Progress
from dimos_streams.agent.models.protocol import ModelRequest
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse
from dimos_streams.agent.subagents.sub_mission import Subset
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.gate_inputs import offered, request
from tests.agent.policies.robot_stage import robot_stage
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
        assert times_shown(brain, "helper", "yes sir") == 0, "whoever delegates sees the report alone"


@pytest.mark.virtual_time
async def test_urgent_input_cuts_what_a_sub_agent_thinks() -> None:
    async def for_ever(request: ModelRequest) -> str:
        await asyncio.sleep(100_000)
        return "at last"

    brain = Brain(delegating("helper", "think"), "over", helper=[for_ever, "at once", "done"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 2)
        urgent = await made.harness.call("say", caller="operator", text="now!", now=True)
        assert (await urgent.result())["text"] == "at once"
        assert (await first.result())["text"] == "over"


@pytest.mark.virtual_time
async def test_what_an_operator_says_to_who_hands_back_without_having_read_it_is_heard_by_who_goes_on() -> None:
    async def slowly(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        await asyncio.sleep(1.0)
        return [("hand_back", {"report": "done"})]

    brain = Brain(delegating("helper", "think"), "over", "hurried", helper=[slowly])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 2)
        second = await made.say("hurry")
        for said in (first, second):
            await said.closed()
        assert times_shown(brain, "You", "hurry") == 1


class Counting(Brain):
    """Counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.virtual_time
async def test_a_model_that_a_sub_agent_shares_is_not_closed_with_its_task() -> None:
    brain = Counting(delegating("helper", "think"), "over", helper=["done"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "over"
        assert brain.closed == 0


class Fixed:
    """A gate and a reviewer that allow a call at first."""

    agents: tuple[str, ...] = ()

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal

    async def review(self, request: CallRequest) -> Allow:
        refusal = Refuse(self.refusal) if self.refusal else None
        return Allow(request.arguments, again=lambda arguments: refusal)

    def tool(self, skill: OfferedSkill) -> None:
        return None


@pytest.mark.parametrize("refuses", ["its list", "its parent's gates"])
@pytest.mark.virtual_time
async def test_what_a_sub_agents_list_allows_no_more_when_the_call_begins_is_refused(refuses: str) -> None:
    reviewer, gate = Fixed(), Fixed()
    (gate if refuses == "its list" else reviewer).refusal = "not any more"
    subset = Subset(reviewer, cast(AllowedGate, gate), ("helper",))
    verdict = await subset.review(request(offered()))
    assert isinstance(verdict, Allow)
    assert await verdict.last_look() == Refuse("not any more")


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
