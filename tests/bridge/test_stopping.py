"""A bridge leaves nothing behind when it stops, whatever it was busy with."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest
from starlette.types import ASGIApp

from dimos_streams.bridge.fleet.link import HubLink
from dimos_streams.bridge.live.viewer import Viewer
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import ModuleFailedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import RunContext, Services
from dimos_streams.serving.server.server import HttpServer
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.monitor.toy_agent import ToyAgent
from tests.bridge.monitor.watching_client import Console
from tests.bridge.scene import Scene, answered, scene
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


@pytest.mark.parametrize("what", ["server", "link to the hub"])
def test_a_bridge_that_cannot_start_leaves_nothing_behind(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = Bridge({"port": 0, "hub": "http://127.0.0.1:9"}, name="bridge", context=RunContext(services=Services()))
    stop_server = HttpServer.stop
    viewers: list[Viewer] = []

    def fail() -> NoReturn:
        bridge.monitor.watch()
        viewers.append(bridge.live.view())
        raise RuntimeError("no room")

    async def serve(server: HttpServer, app: ASGIApp) -> None:
        fail()

    async def stop(server: HttpServer) -> None:
        assert bridge.broadcast.closed, "a stream that waits for events would hold the server up"
        await stop_server(server)

    monkeypatch.setattr(HttpServer, "stop", stop)
    if what == "server":
        monkeypatch.setattr(HttpServer, "serve", serve)
    else:
        monkeypatch.setattr(HubLink, "start", lambda link: fail())

    async def scenario() -> None:
        world = Scene()
        await world.inner.open()
        await world.add()
        tasks, subscriptions = asyncio.all_tasks(), set(world.inner.subscriptions())
        with pytest.raises(ModuleFailedError, match="no room"):
            await world.add(bridge)
        await world.processes[-1].host.stop()
        assert asyncio.all_tasks() == tasks
        assert set(world.inner.subscriptions()) == subscriptions
        assert [viewer.closed for viewer in viewers] == [True]
        assert bridge.broadcast.closed
        await world.close()

    asyncio.run(scenario())
