"""A sub-agent's list holds for its calls, also when the agent was killed and another one goes on with them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import LookoutWorld, lookout, lookout_world
from tests.helpers import until

pytestmark = [pytest.mark.feature("A9", "B10"), pytest.mark.virtual_time]

REFUSED = "'walk' is none of your skills"
DELEGATE = [("delegate", {"agent": "scout", "task": "look"})]


def agents(*skills: str) -> dict[str, Any]:
    return {"scout": {"description": "looks", "prompt": "scout", "skills": skills}}


async def looks_again(w: LookoutWorld) -> None:
    """Until the agent that was begun anew has taken over what runs."""
    looking = (await w.looking()).call_id
    await asyncio.sleep(5)  # for the bridge to believe that this is the agent now
    await until(lambda: looking in {call.call_id for call in w.agent.core.calls.known.open})


@pytest.mark.parametrize("skills", [["look_out_for"], ["look_out_for", "walk"]])
@pytest.mark.parametrize("handed_back", [False, True])
async def test_what_a_call_goes_on_with_after_a_restart(tmp_path: Path, skills: list[str], handed_back: bool) -> None:
    scout = [lookout("walk", distance_m=1), *([[("hand_back", {"report": "looking"})]] if handed_back else [])]
    config: dict[str, Any] = {"agents": agents(*skills)}
    async with lookout_world(Brain(DELEGATE, scout=scout), run_dir=tmp_path / "first", **config) as w:
        await w.say()
        await w.looking()
        last = "sub_mission_end" if handed_back else "result"
        await until(lambda: last in [event.kind for event in w.events])
        for number in range(2):  # the second one has it from the record of the first
            await w.kill_agent(Brain(), tmp_path / f"killed-{number}", **config)
            await looks_again(w)
        w.appear()
        ended = await w.lookout_closed()
        assert (REFUSED in ended.text) is ("walk" not in skills)
        assert w.robot.log_ == ["walk 1"] * ("walk" in skills)


@pytest.mark.parametrize("kind", ["call_run", "call_open", "result"])
async def test_killed_at_any_event_of_the_call_its_list_holds(tmp_path: Path, kind: str) -> None:
    """Of what came after the event the next agent knows from the bridge."""
    config: dict[str, Any] = {"agents": agents("look_out_for")}
    first, second = tmp_path / "first", tmp_path / "second"
    async with lookout_world(Brain(DELEGATE, scout=[lookout("walk", distance_m=1)]), run_dir=first, **config) as w:

        def hear(event: AgentEvent) -> None:
            if event.kind == kind and event.data["skill"] == "look_out_for" and not second.exists():
                shutil.copytree(first, second)

        w.agent.core.events.listen(hear)
        await w.say()
        await w.looking()
        await until(second.exists)
        for run_dir in (second, tmp_path / "third"):
            await w.kill_agent(Brain(), run_dir, **config)
            await looks_again(w)
        w.appear()
        assert REFUSED in (await w.lookout_closed()).text
        assert w.robot.log_ == []


async def test_a_sub_agent_that_is_not_in_the_config_any_more_has_no_skills(tmp_path: Path) -> None:
    brain = Brain(DELEGATE, scout=[lookout("walk", distance_m=1)])
    async with lookout_world(brain, run_dir=tmp_path / "first", agents=agents("*")) as w:
        await w.say()
        await w.looking()
        await w.kill_agent(Brain(), tmp_path / "killed")
        await looks_again(w)
        w.appear()
        assert REFUSED in (await w.lookout_closed()).text
