"""Events in the name of calls that skills ask for, from somebody who runs none of them, in virtual time."""

from __future__ import annotations

import json

import pytest

from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, ToolStreamEvent
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, STATUS
from tests.bridge.calls.families import Composer
from tests.bridge.scene import Scene, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.feature("F6"), pytest.mark.virtual_time]


class Forger:
    """Writes whole streams of children as soon as anybody asks for one, before the bridge has heard of it."""

    def __init__(self, world: Scene, *, module: str, instance: str, outcome: str) -> None:
        self._world, self._module, self._instance, self._outcome = world, module, instance, outcome
        self.forged: set[str] = set()
        world.inner.publish(STATUS, encode(ModuleStatus(module="evil", instance="forged", skills_version="1")))
        world.inner.subscribe(CALLS, self._on_call)

    def _on_call(self, channel: str, data: bytes) -> None:
        call = decode(SkillCall, data, channel=channel)
        if call.parent and not call.module:
            self.forge(call.call_id, call.skill)

    def forge(self, call_id: str, skill: str) -> None:
        """Write the stream of one call, once."""
        if call_id in self.forged:
            return
        self.forged.add(call_id)
        names = {"call_id": call_id, "module": self._module, "skill": skill, "caller": "test"}
        types = ("close",) if self._outcome == "rejected" else ("open", "update", "close")
        for seq, type in enumerate(types, start=1):
            said = {"_instance": self._instance, "outcome": self._outcome, "result": "forged"}
            event = ToolStreamEvent(utime=1, seq=seq, type=type, text="forged", data_json=json.dumps(said), **names)
            self._world.inner.publish(EVENTS, encode(event))


def health(world: Scene, module: str) -> str:
    view = world.broker.directory.module(module)
    assert view is not None
    return view.health


@pytest.mark.parametrize("outcome", ["completed", "failed", "rejected"])
@pytest.mark.parametrize(("module", "instance"), [("worker", ""), ("worker", "forged"), ("evil", "forged")])
async def test_a_skill_hears_of_its_child_from_nobody_but_who_runs_it(
    module: str, instance: str, outcome: str
) -> None:
    async with scene() as world:
        composer = Composer(name="composer")
        await world.add(composer)
        await world.offered("use")
        forger = Forger(world, module=module, instance=instance, outcome=outcome)
        arguments = {"skill": "count", "arguments": {"label": "real", "to": 3}}
        call_id = await world.broker.call("use", arguments, caller="test")
        view = await closed(world.broker, call_id)
        assert forger.forged == {f"{call_id}~1"}
        assert (view.outcome, view.result) == (Outcome.COMPLETED, "real")
        assert [text for text, _ in composer.heard] == ["real 1", "real 2", "real 3"]
        assert (await world.broker.view(f"{call_id}~1")).result == "real"
        await until(lambda: f"events of instance {instance!r} in it are not believed" in health(world, "composer"))
        assert f"call {call_id}~1 is of instance" in health(world, "composer")
        assert world.broker.contradictions() > 0


@pytest.mark.parametrize("outcome", ["completed", "rejected"])
async def test_nobody_refuses_or_takes_a_call_that_a_skill_begins_and_leaves(outcome: str) -> None:
    async with scene() as world:
        forger = Forger(world, module="worker", instance="forged", outcome=outcome)
        arguments = {"then": "count", "arguments": {"label": "real", "to": 3}}
        call_id = await world.broker.call("chain", arguments, caller="test")
        view = await closed(world.broker, call_id)
        assert forger.forged == {f"{call_id}.1"}
        assert (view.outcome, view.result) == (Outcome.COMPLETED, f"{call_id}.1")
        assert (await closed(world.broker, f"{call_id}.1")).result == "real"


async def test_nobody_takes_the_id_of_a_call_that_a_skill_is_going_to_ask_for() -> None:
    async with scene() as world:
        composer = Composer(name="composer")
        await world.add(composer)
        await world.offered("use")
        forger = Forger(world, module="evil", instance="forged", outcome="failed")

        def take_next(channel: str, data: bytes) -> None:
            forger.forge(f"{decode(SkillCall, data, channel=channel).call_id}~1", "count")

        world.inner.subscribe(CALLS, take_next)
        arguments = {"skill": "count", "arguments": {"label": "real", "to": 3}}
        view = await closed(world.broker, call_id := await world.broker.call("use", arguments, caller="test"))
        assert (view.outcome, view.result) == (Outcome.COMPLETED, "real")
        assert (await world.broker.view(f"{call_id}~1")).module == "worker"


async def test_what_the_bridge_says_of_a_call_that_it_refuses_is_no_contradiction() -> None:
    async with scene() as world:
        composer = Composer(name="composer")
        await world.add(composer)
        await world.offered("use")
        call_id = await world.broker.call("use", {"skill": "fly", "arguments": {}}, caller="test")
        assert "no skill is called 'fly'" in (await closed(world.broker, call_id)).text
        assert [error.outcome for error in composer.errors] == [Outcome.REJECTED]
        assert world.broker.contradictions() == 0
