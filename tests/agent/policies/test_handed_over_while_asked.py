"""Calls that change hands while what they go on with waits for an operator."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.agent.models.protocol import ModelRequest
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.lookout_world import LookoutWorld, lookout_world, round_with
from tests.helpers import until

pytestmark = [pytest.mark.feature("D5", "E6"), pytest.mark.virtual_time]

AGENTS = {"helper": {"description": "helps", "prompt": "helper", "skills": ["round", "drop"]}}
DROP = round_with("drop", what="bag")
CHANGED = "The operator has changed the arguments"


def delegating(**more: Any) -> Answer:
    return [("delegate", {"agent": "helper", "task": "go round", **more})]


def shown(brain: Brain, prompt: str, words: str) -> int:
    """How many messages of the newest request with a prompt have the words."""
    of_prompt = [each.messages for each in brain.requests if each.messages[0].text.startswith(prompt)]
    return sum(words in message.text for message in of_prompt[-1][1:])


async def approve_changed(w: LookoutWorld) -> None:
    """Let the call that waits begin, with other arguments; its approval says which call it has become."""
    (approval,) = w.agent.core.gate_state.approvals.pending()
    await w.operator("decide", approval=approval.id, decision="approve", arguments={"what": "box"})
    await until(lambda: [view.call_id for view in w.agent.core.gate_state.approvals.find(approval.id)] != [""])


async def test_handed_back_meanwhile_its_first_owner_hears_of_the_change_and_ends() -> None:
    async def hand_back(request: ModelRequest) -> Answer:
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        return [("hand_back", {"report": "under way"})]

    brain = Brain(delegating(), "round it is", helper=[DROP, hand_back])
    async with lookout_world(brain, agents=AGENTS) as w:
        said = await w.say()
        await until(lambda: "sub_mission_end" in [event.kind for event in w.events])
        await approve_changed(w)
        await w.closed(said)
        assert w.robot.log_ == ["drop box"]
        assert shown(brain, "You", CHANGED) == 1
        assert shown(brain, "helper", CHANGED) == 0


async def test_handed_over_meanwhile_its_new_owner_hears_of_the_change_and_ends() -> None:
    async def hand_over(request: ModelRequest) -> Answer:
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        return delegating(calls=[w.agent.core.calls.known.open[0].call_id])

    brain = Brain(DROP, hand_over, "done", helper=["waiting"])
    async with lookout_world(brain, agents=AGENTS) as w:
        said = await w.say()
        await until(lambda: any(each.messages[0].text == "helper" for each in brain.requests))
        await approve_changed(w)
        await w.closed(said)
        assert w.robot.log_ == ["drop box"]
        assert shown(brain, "helper", CHANGED) == 1
        assert shown(brain, "You", CHANGED) == 0


async def test_a_change_that_a_sub_agent_has_not_read_goes_to_whoever_gets_the_call() -> None:
    async def hand_back(request: ModelRequest) -> Answer:
        await until(lambda: "drop" in [event.data["skill"] for event in w.events if event.kind == "call_open"])
        return [("hand_back", {"report": "under way"})]

    brain = Brain(delegating(), "round it is", helper=[DROP, hand_back])
    async with lookout_world(brain, agents=AGENTS) as w:
        said = await w.say()
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        await approve_changed(w)
        await w.closed(said)
        assert shown(brain, "You", CHANGED) == 1
        assert shown(brain, "helper", CHANGED) == 0
