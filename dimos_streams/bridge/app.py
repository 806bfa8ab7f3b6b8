"""The HTTP surface of the bridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.http.call_routes import mount_calls
from dimos_streams.bridge.http.ending_requests import ends_something
from dimos_streams.bridge.http.event_routes import mount_events
from dimos_streams.bridge.http.health import health_of
from dimos_streams.bridge.http.metrics import BridgeCollector, mount_metrics
from dimos_streams.bridge.http.pictures import mount_pictures
from dimos_streams.bridge.http.robots import mount_robots
from dimos_streams.bridge.http.settings import mount_settings
from dimos_streams.bridge.live.routes import mount_live
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.routes import mount_mcp
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.monitor.monitor import Monitor
from dimos_streams.bridge.monitor.routes import mount_monitor
from dimos_streams.dashboard.serving import PATHS, mount_dashboard
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.serving.app import new_app
from dimos_streams.serving.openapi import refusals
from dimos_streams.serving.route import answer_head
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.request_guard import Guard
from dimos_streams.serving.server.request_order import RequestOrder
from dimos_streams.serving.server.timing import PING_S
from dimos_streams.tool_stream.gateway import OfferedSkill
from dimos_streams.tool_stream.liveness.module_view import ModuleView


def create_app(
    broker: Broker,
    broadcast: JournalBroadcast,
    *,
    monitor: Monitor | None = None,
    live: LiveTopics | None = None,
    ping_s: float = PING_S,
    connection_ends: ConnectionEnds | None = None,
    run_dir: Path | None = None,
    disk: Callable[[], str] = lambda: "",
    fleet_hub: Callable[[], dict[str, Any] | None] = lambda: None,
) -> FastAPI:
    """Create the app, without its guard.

    Args:
        broker: what looks after calls.
        broadcast: hands out their events.
        monitor: what operators' consoles watch; without it there are neither these nor the dashboard.
        live: the topics of the bus that clients may watch.
        ping_s: the time without events, in seconds, after which an event stream sends a comment.
        connection_ends: how connections are ended.
        run_dir: the folder with the run's files, None if there is none.
        disk: returns the reason why these can't be written, empty if they can.
        fleet_hub: returns the state of the link to a hub, None if there is no link.
    """
    connection_ends = connection_ends or ConnectionEnds()
    app = new_app("bridge")
    _mount_views(app, broker, broadcast, disk, fleet_hub)
    mount_calls(app, broker)
    mount_events(app, broker, broadcast, ping_s=ping_s, connection_ends=connection_ends)
    mount_robots(app, broker)
    mount_settings(app, broker)
    mount_pictures(app, run_dir)
    if live is not None:
        mount_live(app, live, connection_ends)
    if monitor is not None:
        mount_monitor(app, monitor, broker, connection_ends)
        mount_dashboard(app)
    mount_mcp(app, McpServer(BrokerCalls(broker), broadcast))
    answer_head(app)
    return app


def guarded(
    app: ASGIApp,
    *,
    host: str,
    token: str | None,
    allowed_hosts: tuple[str, ...] = (),
    outdated_s: Callable[[], float],
) -> ASGIApp:
    """The app behind its guard, as it is served; ``outdated_s`` as ``RequestOrder`` takes it."""
    return Guard(
        RequestOrder(app, outdated_s, ends_something),
        host=host,
        token=token,
        allowed_hosts=allowed_hosts,
        public=PATHS,
    )


def _mount_views(
    app: FastAPI,
    broker: Broker,
    broadcast: JournalBroadcast,
    disk: Callable[[], str],
    fleet_hub: Callable[[], dict[str, Any] | None],
) -> None:
    """Add the routes that show health, metrics, skills and modules."""

    @app.get("/healthz", responses=refusals())
    async def healthz() -> dict[str, Any]:
        return health_of(broker, broadcast, disk(), fleet_hub())

    mount_metrics(app, BridgeCollector(broker, broadcast))

    @app.get("/skills", responses=refusals())
    async def skills() -> list[OfferedSkill]:
        return await broker.skills()

    @app.get("/modules", responses=refusals())
    async def modules() -> list[dict[str, Any]]:
        return [_module(module) for module in await broker.modules()]


def _module(module: ModuleView) -> dict[str, Any]:
    """A module for readers of HTTP: without its instance, by which its streams are bound to it on the bus, and times
    of this process's clock."""
    fields = asdict(module)
    del fields["instance"], fields["since"]
    for rival in fields["rivals"]:
        del rival["id"]
    return {**fields, "alive": module.alive, "skills": [skill.name for skill in module.skills]}
