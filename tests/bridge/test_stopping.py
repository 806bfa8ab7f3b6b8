"""A bridge leaves nothing behind when it stops, whatever it was busy with."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.tool_stream.event import CALLS
from dimos_streams.tool_stream.gateway import SkillGateway
from tests.bridge.monitor.parts import Console, ToyAgent
from tests.bridge.parts import answered, scene
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_bridge_that_stops_leaves_nothing_on_the_bus_and_no_task() -> None:
    async with scene() as world:
        await world.processes[0].host.stop()
        await world.add(ToyAgent(name="agent"))
        tasks, subscriptions = asyncio.all_tasks(), set(world.inner.subscriptions())
        await world.start_bridge()
        bridge = world.processes[-1]
        await world.offered("follow")
        await world.offered("report")

        watcher = Console(world.bridge.monitor.watch())
        await answered(world.broker, await world.broker.call("follow", {"description": "ann"}, caller="you"))
        waiting = asyncio.create_task(
            world.broker.call("follow", {"description": "bob"}, caller="you", lease_wait_s=60)
        )
        unknown = SkillCall(call_id="c1", skill="count", parent="nobody knows it", arguments_json="{}")
        world.inner.publish(CALLS, encode(unknown))
        await until(lambda: "agent" in watcher.state.get("agents", {}))
        assert set(world.inner.subscriptions()) > subscriptions

        services = world.bridge.context.services
        assert services.get(SkillGateway) is world.broker  # type: ignore[type-abstract]
        await bridge.host.stop()
        assert services.get(SkillGateway) is None, "others of its process begin nothing with it"  # type: ignore[type-abstract]
        assert set(world.inner.subscriptions()) == subscriptions
        await watcher.close()
        waiting.cancel()
        await asyncio.wait([waiting])
        left = {task.get_name().partition(":")[0] for task in asyncio.all_tasks() - tasks}
        assert left == {"follow", "report"}, "calls go on without a bridge"
