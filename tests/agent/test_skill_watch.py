"""What may be wrong with the skills that an agent is given is told once, and shown while it is so."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.module import Agent
from dimos_streams.agent.skill_warnings import MAX_OWN_TOOLS, unmatched
from dimos_streams.cli.bridge_client.run_status.state import ModuleState
from dimos_streams.cli.bridge_client.run_status.text import said_by
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.operator.known_names import AGENT_TOOLS
from dimos_streams.skill import SkillInfo, skill, skills_of
from tests.agent.policies.brain import Brain
from tests.agent.policies.robot_stage import robot_stage
from tests.agent.stage import NoConfig, Stage
from tests.helpers import until

pytestmark = [pytest.mark.feature("K5"), pytest.mark.virtual_time]

TOO_MANY = "model servers take 5: set `skills` to those that it needs, or `limits.tools`"


class Late(Module):
    """Comes later."""

    config: NoConfig

    @skill(tags=("late",))
    async def later(self) -> str:
        """Be late."""
        return ""


class Crowd(Module):
    """Has many skills."""

    config: ModuleConfig


class Namesake(Module):
    """Has a skill that is called like an agent's own tool."""

    config: NoConfig

    @skill
    async def cancel_call(self) -> str:
        """Call a taxi off."""
        return "called off"


for number in range(130):
    setattr(Crowd, f"skill_{number}", skill(name=f"skill_{number}")(lambda self: ""))


def notes(made: Stage, words: str) -> list[str]:
    return [entry.text for entry in made.entries("note") if words in entry.text]


async def test_too_many_tools_are_told_of_once_and_shown_until_they_are_fewer(caplog: Any) -> None:
    brain = Brain(*["hm"] * 3)
    with caplog.at_level(logging.WARNING, "dimos_streams.agent"):
        async with robot_stage(brain, limits={"tools": 5}) as (made, robot):
            for _ in range(2):
                await (await made.say("go")).closed()
                await asyncio.sleep(1)
            (text,) = notes(made, "tools")
            offered = len(brain.offered())
            assert text.startswith(f"the model is offered {offered} tools (")
            assert TOO_MANY in text
            assert sum(text in record.getMessage() for record in caplog.records) == 1
            assert made.agent.core.operators.snapshots.take(watched=False).warnings == (text,)
            assert json.loads(made.agent.state_json) == {"warnings": [text]}
            states = [ModuleState(name="agent", alive=True, state=json.loads(made.agent.state_json))]
            assert list(said_by([*states, ModuleState(name="x", alive=True)])) == [f"WARNING agent: {text}"]
            for name in list(made.agent.core.catalog.offered):
                made.agent.core.gate_state.enabled.set(name, False)
            await asyncio.sleep(1)
            await (await made.say("go")).closed()
            assert made.agent.core.operators.snapshots.take(watched=False).warnings == ()
            assert made.agent.state_json == ""
            assert robot.log_ == []


async def test_a_skill_that_is_called_like_a_tool_of_the_agent_is_not_offered_and_told_of() -> None:
    """With two tools of one name, servers of models refuse all that is asked of them."""
    brain = Brain("hm")
    async with robot_stage(brain, limits={"tools": None}) as (made, _):
        await made.harness.add(Namesake(name="taxi"))
        await until(lambda: "cancel_call" in made.agent.core.catalog.offered)
        await (await made.say("go")).closed()
        assert "Call a taxi off." not in [tool.description for tool in brain.requests[-1].tools]
        (text,) = notes(made, "the agent's own tools")
        assert text == "its model can't call these skills: cancel_call; the agent's own tools have these names"
        own = made.agent.core.loop.parts.toolbox.local
        assert all(name in own for name in AGENT_TOOLS)
        infos = [each.info("") for each in skills_of(Namesake).values()]
        faults = Agent.skill_warnings(made.agent.core.config, "agent", {"taxi": infos})
        assert text in [fault.text for fault in faults], "check says so, too"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "limit", "warned"),
    [("offline", "auto", False), ("openai:x", "auto", True), ("openai:x", None, False), ("offline", 128, True)],
)
async def test_how_many_are_too_many_depends_on_the_model(model: str, limit: Any, warned: bool) -> None:
    async with robot_stage(Brain("hm"), limits={"tools": limit}) as (made, _):
        made.agent.core.model.limits = made.agent.core.config.loop_limits(model)
        await made.harness.add(Crowd(name="crowd"))
        await until(lambda: made.agent.core.catalog.offered.keys() >= {"skill_129"})
        assert bool(notes(made, "take 128: set `skills`")) is warned


async def test_an_entry_that_means_nothing_is_told_of_when_modules_could_have_come() -> None:
    config: dict[str, Any] = {
        "skills": ["walk", "tag:late", "lok", "!nobody"],
        "agents": {"a": {"description": "", "prompt": "", "skills": ["nothing"]}},
        "approval": {"rules": [{"skill": "wal*"}, {"skill": "*"}, {"skill": "wlk", "action": "deny"}]},
        "disabled_skills": ["wa*k"],
    }
    async with robot_stage(Brain("hm"), **config) as (made, _):
        await (await made.say("go")).closed()
        assert notes(made, "means no skill") == []
        await until(lambda: made.agent.state_json)
        assert notes(made, "means no skill") == list(made.agent.core.skill_watch.warnings)
        assert [text.partition(" means")[0] for text in notes(made, "means no skill")] == [
            "'tag:late' in skills",
            "'lok' in skills",
            "'!nobody' in skills",
            "'nothing' in agents.a.skills",
            "'wlk' in approval.rules",
            "'wa*k' in disabled_skills",
        ]
        assert notes(made, "did you mean 'look'?")
        await made.harness.add(Late(name="late"))
        await asyncio.sleep(1)
        await (await made.say("go")).closed()
        assert len(made.agent.core.skill_watch.warnings) == 5
        assert len(notes(made, "means no skill")) == 6


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["x", "\u00e4", "\U0001d400"])
async def test_warnings_are_bounded(letter: str) -> None:
    async with robot_stage(Brain("hm"), skills=[f"{letter * 190}{number}" for number in range(150)]) as (made, _):
        await until(lambda: made.agent.state_json)
        shown = made.agent.core.skill_watch.warnings
        assert (len(shown), shown[-1]) == (9, "and 142 more")
        assert len(notes(made, "means no skill")) == 16


async def test_an_agent_has_no_more_tools_of_its_own_than_check_reckons_with() -> None:
    config: dict[str, Any] = {
        "call_tools_always": True,
        "plan": {"motions": 2},
        "agents": {"a": {"description": "", "prompt": ""}},
        "skills": [],
    }
    brain = Brain("hm")
    async with robot_stage(brain, **config) as (made, _):
        await (await made.say("go")).closed()
        assert len(brain.offered()) == MAX_OWN_TOOLS


@pytest.mark.parametrize(
    ("order", "lacks"),
    [
        (True, ""),
        ({"properties": True, "required": True}, ""),
        ({"properties": {"boxes": True, "shelf": True}}, ""),
        ({"properties": {"boxes": {}, "shelf": {"default": "A"}}, "required": ["shelf"]}, "lacks shelf,"),
        ({"$ref": "#/$defs/Order"}, "lacks shelf,"),
    ],
)
def test_a_rule_for_an_object_is_looked_at_whatever_the_schema_of_that_is(order: object, lacks: str) -> None:
    rule = {"skill": "pick", "arguments": {"order": {"boxes": 2}}}
    config = AgentConfig.model_validate({"approval": {"rules": [rule]}})
    defined = {"Order": {"properties": {"shelf": {"default": "A"}}}}
    pick = SkillInfo(name="pick", description="", parameters={"properties": {"order": order}, "$defs": defined})
    found = [fault.text for fault in unmatched(config, "agent", [pick])]
    assert len(found) == bool(lacks)
    assert all(lacks in text for text in found)
