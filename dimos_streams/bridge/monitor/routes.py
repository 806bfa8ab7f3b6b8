"""``WS /monitor`` and ``GET /monitor/schema``."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, WebSocket

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.monitor.commands import Commands
from dimos_streams.bridge.monitor.monitor import Monitor
from dimos_streams.bridge.monitor.socket import QUERY, serve
from dimos_streams.operator.agents import is_called, unknown_agent
from dimos_streams.operator.schema import schema
from dimos_streams.serving.only_socket import mount_only_socket
from dimos_streams.serving.openapi import refusals
from dimos_streams.serving.query_names import check_query
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.seats import Seats

MAX_WATCHERS = 64
"""Maximum number of watchers at a time; each may have a megabyte that waits for it."""


def mount_monitor(app: FastAPI, monitor: Monitor, broker: Broker, connection_ends: ConnectionEnds) -> None:
    """Add the routes to an app."""
    commands, seats = Commands(broker), Seats(MAX_WATCHERS)

    @app.get("/monitor/schema", responses=refusals())
    async def monitor_schema() -> dict[str, Any]:
        return schema()

    mount_only_socket(app, "/monitor")

    @app.websocket("/monitor")
    async def watch(socket: WebSocket) -> None:
        check_query(socket, QUERY)
        if agent := socket.query_params.get("agent"):
            await _check_agent(broker, agent)
        async with seats.accept(socket) as has_seat:
            if has_seat:
                await serve(socket, monitor, commands, connection_ends)


async def _check_agent(broker: Broker, wanted: str) -> None:
    """Raise ``UnknownAgentError`` for what is no agent's module or namespace: its watcher would wait in vain."""
    agents = await broker.agents(wanted)
    if not any(is_called(agent.name, wanted) for agent in agents):
        raise unknown_agent(agents, wanted)
