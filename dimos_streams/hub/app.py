"""The HTTP interface of a hub, put together."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from starlette.types import ASGIApp

from dimos_streams.bridge.http.ending_requests import ends_something
from dimos_streams.bridge.mcp.routes import mount_mcp
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.hub.dashboard.routes import PATHS, mount_dashboard
from dimos_streams.hub.http.call_routes import mount_calls
from dimos_streams.hub.http.elsewhere import mount_elsewhere
from dimos_streams.hub.http.event_routes import mount_events
from dimos_streams.hub.http.hub_kinds import KINDS
from dimos_streams.hub.http.robot_side import mount_robot_side
from dimos_streams.hub.http.robot_tokens import RobotTokens
from dimos_streams.hub.http.robot_turns import RobotTurns
from dimos_streams.hub.http.robots import mount_robots
from dimos_streams.hub.http.views import mount_views
from dimos_streams.hub.mcp_calls import FleetCalls
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.upkeep import Upkeep
from dimos_streams.serving.app import new_app
from dimos_streams.serving.route import answer_head
from dimos_streams.serving.server.request_guard import Guard
from dimos_streams.serving.server.request_order import RequestOrder


def create_app(parts: HubParts, upkeep: Upkeep, outdated_s: Callable[[], float]) -> ASGIApp:
    """The app of a hub: robots with their tokens on one side, operators behind their guard on the other, whose
    requests are begun as ``RequestOrder`` does it with ``outdated_s``."""
    settings = parts.settings
    robots = Guard(
        RequestOrder(_robot_side(parts)), host=settings.host, token=None, allowed_hosts=settings.allowed_hosts
    )
    in_turn = RobotTurns(robots, lambda: parts.intake.pace_s)
    operators = Guard(
        RequestOrder(_operators_side(parts, upkeep), outdated_s, ends_something),
        host=settings.host,
        token=settings.token,
        token_of="the operators'",
        allowed_hosts=settings.allowed_hosts,
        public=PATHS,
    )
    return RobotTokens(in_turn, operators, parts.storage, parts.threads.orders)


def _robot_side(parts: HubParts) -> FastAPI:
    app = new_app("hub", KINDS, of_hub=True)
    mount_robot_side(app, parts)
    return app


def _operators_side(parts: HubParts, upkeep: Upkeep) -> FastAPI:
    app = new_app("hub", KINDS, of_hub=True)
    mount_views(app, parts, upkeep)
    mount_events(app, parts)
    mount_robots(app, parts)
    mount_calls(app, parts)
    mount_elsewhere(app)
    mount_dashboard(app)
    mount_mcp(app, McpServer(FleetCalls(parts), parts.feed.broadcast))
    answer_head(app)
    return app
