"""Stand-ins for skills."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus
from dimos_streams.client.iterators import closing
from dimos_streams.errors import SkillError
from dimos_streams.messages.codec import channel_name
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.module import RunContext
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.skill import skills_of
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.testing import ModuleHarness
from dimos_streams.testing.mock_skill import MockSkill, mock_module, mock_skill
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until

_SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}


def test_the_stand_in_looks_like_the_skill_and_goes_away_again() -> None:
    for module, name in ((FollowPerson, "follow_person"), (Drive, "go_to"), (Drive, "stop")):
        real = skills_of(module)[name]
        with mock_skill(module, name):
            mocked = skills_of(module)[name]
            assert mocked.info() == real.info()
            assert mocked.function is not real.function
        assert skills_of(module)[name].function is real.function
        assert {name: spec.info() for name, spec in skills_of(mock_module(module)).items()} == {
            name: spec.info() for name, spec in skills_of(module).items()
        }


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match="did you mean 'follow_person'"), mock_skill(FollowPerson, "follow_persom"):
        pass


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ({"error": "a wall"}, r"error='a wall' is no exception; valid: error=SkillError\('a wall'\)"),
        ({"updates": "On"}, r"updates='On' is one text, not several; valid: updates=\['On'\]"),
    ],
)
def test_what_it_could_not_play_is_refused(script: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said), mock_skill(Drive, "go_to", **script):
        pass


@pytest.mark.feature("E8")
@pytest.mark.virtual_time
async def test_the_same_life_leases_and_events_and_no_actuator_moves() -> None:
    context = RunContext()
    bridge = Bridge({"http": False}, name="bridge", context=context)
    with mock_skill(Drive, "move", updates=["on the way"], endless=True, result={"did": "moved"}) as mock:
        async with ModuleHarness(bridge) as harness:
            await harness.add(Drive(name="drive", context=context), unwired=("scan",))
            broker = bridge.broker
            await until(lambda: any(info.name == "move" for _, info in broker.directory.skills()))
            call = await broker.call("move", {"distance_m": 2}, caller="test")
            assert await broker.wait(call, "answer", 5)
            assert broker.ledger.leases.holders() == {"base": call}
            with pytest.raises(SkillError, match="needs 'base'"):
                await broker.call("turn", {"angle_deg": 90}, caller="test")
            with pytest.raises(SkillError, match="distance_m"):
                await broker.call("move", {"distance_m": 99}, caller="test")
            mock.end.set()
            assert await broker.wait(call, "close", 5)
            view = await broker.view(call)
            assert (view.answer, view.outcome, view.result) == ("on the way", Outcome.COMPLETED, {"did": "moved"})
            assert broker.ledger.leases.holders() == {}
            assert mock.calls == [{"distance_m": 2.0}]
            assert harness.sent("cmd_vel") == []


@pytest.mark.virtual_time
async def test_errors_cancellation_and_behaviour_of_ones_own() -> None:
    with mock_skill(Drive, "move", error=SkillError("the wheels are off")):
        async with ModuleHarness(mock_module(Drive, turn=MockSkill(endless=True, updates=["turning"]))) as harness:
            turning = await harness.call("turn", angle_deg=90)
            assert await turning.answer() == "turning"
            turning.cancel()
            assert (await turning.closed()).outcome is Outcome.CANCELLED
            assert await (await harness.call("stop")).result() is None
        async with ModuleHarness(Drive, unwired=("scan",)) as harness:
            assert (await (await harness.call("move", distance_m=1)).closed()).text == "the wheels are off"


@pytest.mark.virtual_time
async def test_a_whole_blueprint_without_a_single_command_to_the_base() -> None:
    sent: list[bytes] = []

    @contextlib.asynccontextmanager
    async def listen(bus: Bus) -> AsyncIterator[None]:
        bus.subscribe(channel_name("/skill_vel", Twist), lambda channel, data: sent.append(data))
        yield

    with mock_skill(FollowPerson, "follow_person", updates=["Following"], pause_s=0.1, result="gone") as mock:
        run = InProcessRun(
            resolve("follow-person").configured(_SMALL, source="test"),
            RunOptions(bus_url="memq://"),
            attach=[listen],
        )
        await run.start()
        try:
            assert run.gateway is not None
            call = await run.gateway.call("follow_person", {"description": "anybody"}, caller="test")
            async with closing(run.gateway.events(after=0, call_id=call)) as events:
                async for entry in events:
                    if entry.event.type == "close":
                        assert entry.event.data["result"] == "gone"
                        break
        finally:
            await run.stop()
    assert mock.calls[0]["description"] == "anybody"
    assert sent == []
