"""Whole stock blueprints on one loop in virtual time."""

from __future__ import annotations

import asyncio
import hashlib
import math
import traceback
from collections import defaultdict

import pytest

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.clock import run_virtual
from dimos_streams.errors import ModuleFailedError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView, SkillGateway
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.helpers import until

pytestmark = pytest.mark.slow

INPUT = "look out for a person in a red shirt and follow them"


def virtual_run(described: Blueprint, seed: int = 0) -> InProcessRun:
    return InProcessRun(described, RunOptions(bus_url="memq://", seed=seed))


def gateway_of(run: InProcessRun) -> SkillGateway:
    assert run.gateway is not None
    return run.gateway


async def view(gateway: SkillGateway, call_id: str) -> CallView:
    return next(call for call in await gateway.calls() if call.call_id == call_id)


@pytest.mark.feature("A12")
def test_two_robots_are_followed_through_names_of_their_own() -> None:
    robots = [include("robot-only", namespace=name) for name in ("robot1", "robot2")]
    both = blueprint("both", *robots, include(resolve("follow-person").model_copy(update={"modules": bridge_only()})))
    assert [problem for problem in check(both) if problem.severity == "error"] == []
    ways: dict[str, list[tuple[float, float]]] = defaultdict(list)

    async def scenario() -> None:
        run = virtual_run(both)
        await run.start()
        for robot in ("robot1", "robot2"):

            def on_truth(channel: str, data: bytes, robot: str = robot) -> None:
                base = next(t for t in decode(TFMessage, data).transforms if t.child_frame_id == "base_link")
                ways[robot].append((base.transform.translation.x, base.transform.translation.y))

            run.bus.subscribe(f"/{robot}/ground_truth#tf2_msgs.TFMessage", on_truth)
        gateway = gateway_of(run)
        await asyncio.sleep(2)
        names = {skill.name for skill in await gateway.skills()}
        assert {"robot1_follow_person", "robot2_follow_person"} <= names
        first = await gateway.call("robot1_follow_person", {"description": "person in red"}, caller="test")
        second = await gateway.call("robot2_follow_person", {"description": "person in red"}, caller="test")
        await asyncio.sleep(12)
        for call_id, name in ((first, "robot1/follow"), (second, "robot2/follow")):
            followed = await view(gateway, call_id)
            assert (followed.state, followed.module, followed.resources) == (
                "open",
                name,
                (f"{name.partition('/')[0]}/base",),
            )
        await run.stop()

    run_virtual(scenario())
    assert all(math.dist(way[0], way[-1]) > 0.5 for way in ways.values())


def bridge_only() -> dict[str, object]:
    return {"bridge": resolve("follow-person").modules["bridge"]}


@pytest.mark.virtual_time
@pytest.mark.feature("A10")
async def test_a_robot_without_bridge_and_agent_runs_its_skills() -> None:
    described = resolve("robot-only")
    assert [problem for problem in check(described) if problem.severity == "error"] == []
    run = virtual_run(described)
    await run.start()
    assert run.gateway is None
    events: list[ToolEvent] = []
    run.bus.subscribe(EVENTS, lambda channel, data: events.append(unpack_event(data)))
    call = SkillCall(call_id="by-hand", module="drive", skill="turn", arguments_json='{"angle_deg": 40}')
    await asyncio.sleep(1)
    run.bus.publish(CALLS, encode(call))
    await until(lambda: events and events[-1].type == "close")
    assert events[-1].data["outcome"] == "completed"
    await run.stop()


def test_the_same_seed_gives_the_same_bytes_on_every_channel() -> None:
    async def scenario(seed: int) -> str:
        run = virtual_run(resolve("follow-person"), seed)
        digest = hashlib.sha256()
        await run.start()

        def on_message(channel: str, data: bytes) -> None:
            digest.update(channel.encode())
            digest.update(data)

        run.bus.subscribe_all(on_message)
        await gateway_of(run).call("say", {"text": INPUT}, caller="operator")
        await asyncio.sleep(5)
        await run.stop()
        return digest.hexdigest()

    first = run_virtual(scenario(7))
    assert run_virtual(scenario(7)) == first
    assert run_virtual(scenario(8)) != first


@pytest.mark.virtual_time
async def test_the_conversation_has_every_step_of_the_mission() -> None:
    run = virtual_run(resolve("follow-person"), seed=7)
    await run.start()
    gateway = gateway_of(run)
    said = await gateway.call("say", {"text": INPUT}, caller="operator")
    reported: list[ToolEvent] = []

    async def listen() -> None:
        async for journalled in gateway.events(after=0, call_id=said):
            reported.append(journalled.event)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(20)
    await gateway.call("say", {"text": "stop"}, caller="operator")
    await until(lambda: reported and reported[-1].type == "close")
    entries = [event.data["entry"] for event in reported if "entry" in event.data]
    called = [tool["skill"] for entry in entries for tool in entry.get("tool_calls", [])]
    texts = "\n".join(event.text for event in reported)
    assert "look_out_for" in called
    assert "Saw person in a red shirt" in texts
    assert "follow_person" in texts
    assert sum(entry["role"] == "progress" for entry in entries) >= 3
    assert "the operator said 'stop'" in texts
    assert reported[-1].data["result"]["reason"] == "aborted"
    listening.cancel()
    await run.stop()


class Kettle(Module):
    """A kettle."""

    config: ModuleConfig

    async def run(self) -> None:
        """Boil over."""
        raise OSError("boiled over")


@pytest.mark.virtual_time
async def test_where_a_module_has_failed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    run = virtual_run(blueprint("kitchen", module(Kettle, name="kettle")))
    await run.start()
    with pytest.raises(ModuleFailedError, match="module 'kettle' failed: OSError: boiled over"):
        await run.wait()
    await run.stop()
    (record,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    assert "in run" in "".join(traceback.format_exception(record.exc_info[1]))
