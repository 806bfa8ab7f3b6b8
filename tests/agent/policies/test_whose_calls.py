"""A model ends calls of its own agent only; it may stop motion all the same, and the call says who has ended it."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import lookout_world, round_with
from tests.agent.policies.robot_stage import robot_stage
from tests.agent.stage import NoConfig
from tests.bridge.scene import answered, closed
from tests.helpers import until


class Legs(Module):
    """Legs that walk on until they are to halt."""

    config: NoConfig

    async def start(self) -> None:
        """See ``Module``."""
        self._calls = OwnCalls()

    @skill(motion=True)
    async def march(self, call: Call) -> None:
        """Walk on."""
        with self._calls.running(call, "marching"):
            await call.update("marching")
            await asyncio.Event().wait()

    @skill(tags={"stop"})
    async def halt(self, call: Call) -> str:
        """Stop walking."""
        return f"Stopped {', '.join(await self._calls.end(call, 'halt was called'))}"


@pytest.mark.feature("E3")
@pytest.mark.virtual_time
async def test_a_model_stops_an_operators_motion_but_does_not_end_its_calls() -> None:
    ids: list[str] = []
    brain = Brain(
        lambda request: [("cancel_call", {"call_id": ids[0]}), ("cancel_call", {"call_id": "all"})],
        [("halt", {})],
        "stopped",
    )
    async with robot_stage(brain) as (made, _):
        await made.harness.add(Legs(name="legs"))
        broker = made.bridge.broker
        await until(lambda: "legs" in {view.name for view in broker.directory.modules() if view.skills})
        ids += [await broker.call(name, {}, caller="cli") for name in ("march", "follow")]
        for call_id in ids:
            await answered(broker, call_id)
        await (await made.say("go")).closed()
        refused, none, stopped = (entry.text for entry in made.entries("tool"))
        assert refused.startswith(
            f"call {ids[0]!r} of 'march' was begun by 'cli', and is theirs to end; to stop motion"
        )
        assert (none, stopped) == ("No call runs.", "Stopped marching")
        march = await closed(broker, ids[0])
        assert (march.outcome, march.text) == ("cancelled", "halt was called (by 'agent')")
        assert (await broker.view(ids[1])).state == "open"


@pytest.mark.feature("E6")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.virtual_time
async def test_what_a_sub_agents_call_goes_on_with_takes_the_place_of_its_own_calls_only(own: bool) -> None:
    agents = {"helper": {"description": "patrols", "prompt": "helper", "skills": ["round", "patrol"]}}
    hall, yard = [("patrol", {"where": "hall"})], round_with("patrol", where="yard")
    delegate = [("delegate", {"agent": "helper", "task": "the yard"})]
    brain = Brain(*([delegate] if own else [hall, delegate]), helper=[hall, yard] if own else [yard])
    async with lookout_world(brain, agents=agents) as w:
        await w.say()
        ended = await w.lookout_closed("round")
        if own:
            await until(lambda: w.robot.log_ == ["patrol hall begins", "patrol hall ends", "patrol yard begins"])
        else:
            assert w.robot.log_ == ["patrol hall begins"]
            assert ended.outcome is Outcome.FAILED
            assert "runs already" in ended.text
