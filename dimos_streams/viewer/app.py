"""The HTTP surface of a recording: what the operators' page reads of a bridge, and nothing that gives an order."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response, WebSocket
from starlette.types import ASGIApp

from dimos_streams.bridge.http.call_views import mount_call_views
from dimos_streams.bridge.live.routes import mount_live
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bridge.monitor.lanes import Lanes
from dimos_streams.bridge.monitor.socket import QUERY
from dimos_streams.bridge.monitor.socket import serve as serve_monitor
from dimos_streams.bridge.monitor.view import message
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.dashboard.serving import PATHS, mount_dashboard
from dimos_streams.errors import UnknownCallError
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.query import QueryBack
from dimos_streams.operator.messages.commands import id_of
from dimos_streams.operator.schema import schema
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.app import new_app
from dimos_streams.serving.events import pages
from dimos_streams.serving.events.parameters import OfCall, OfCaller
from dimos_streams.serving.only_socket import mount_only_socket
from dimos_streams.serving.openapi import refusals
from dimos_streams.serving.query_names import check_query
from dimos_streams.serving.route import answer_head
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.serving.server.request_guard import Guard
from dimos_streams.serving.server.seats import Seats
from dimos_streams.serving.server.watch_only import WatchOnly
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.liveness.called_skills import called_skills
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.playback_lock import PlaybackLock
from dimos_streams.viewer.socket import serve as serve_transport

MAX_WATCHERS = 64
"""The largest number of clients at a time that watch the state; as many may set the clock."""
REFUSAL = "a recording takes no orders: what is shown has happened"


class NoOrders:
    """The commands of ``WS /monitor``: each is refused."""

    async def carry_out(self, text: str, lanes: Lanes) -> bytes:
        """Return the answer to a command, a message without its ``seq``."""
        try:
            id = id_of(parse_client_json(text))
        except ValueError:  # whatever it was, it is refused
            id = None
        return message("error", id=id, problem="refused", text=REFUSAL, errors={}, call_id="")


def create_app(
    playback: Playback,
    broadcast: JournalBroadcast,
    live: LiveTopics,
    about: dict[str, Any],
    connection_ends: ConnectionEnds,
) -> FastAPI:
    """The app, unguarded. ``about`` is the recording's description for pages."""
    app = new_app("recording")
    _mount_views(app, playback)
    _mount_calls(app, playback, broadcast)
    _mount_sockets(app, playback, about, connection_ends)
    mount_live(app, live, connection_ends)
    mount_dashboard(app, "recording")
    answer_head(app)
    return app


def guarded(app: ASGIApp, host: str) -> ASGIApp:
    """Return the app behind its guard, which is what is served."""
    return Guard(WatchOnly(app, REFUSAL), host=host, token=None, public=PATHS)


def _mount_views(app: FastAPI, playback: Playback) -> None:
    @app.get("/healthz", responses=refusals())
    async def healthz() -> dict[str, Any]:
        return {"status": "ok", "recording": True, "utime": playback.utime(), "offset": playback.world.offset}

    @app.get("/skills", responses=refusals())
    async def skills() -> list[dict[str, Any]]:
        return [
            {**called.info.model_dump(mode="json"), "module": called.module.name, "available": called.module.alive}
            for called in called_skills(playback.world.modules())
        ]

    @app.get("/monitor/schema", responses=refusals())
    async def monitor_schema() -> dict[str, Any]:
        return schema()


def _mount_calls(app: FastAPI, playback: Playback, broadcast: JournalBroadcast) -> None:
    async def view(call_id: str) -> CallView:
        call = playback.world.call(call_id)
        if call is None:
            raise UnknownCallError(call_id)
        return call.view()

    mount_call_views(app, lambda: playback.world.calls(), view)

    @app.get(
        "/events",
        response_class=Response,
        response_model=None,
        responses=pages.ANSWER | refusals(problem_kinds.BAD_REQUEST),
    )
    async def events(
        call: OfCall = None,
        caller: OfCaller = None,
        before: pages.Before = pages.NEWEST,
        limit: pages.Limit = pages.DEFAULT_LIMIT,
        progress: pages.Progress = False,
    ) -> Response:
        # What comes later has not happened yet.
        query = QueryBack(min(before, playback.world.offset + 1), caller, call, progress=progress)
        return await pages.page_back(broadcast, query, limit)


def _mount_sockets(app: FastAPI, playback: Playback, about: dict[str, Any], connection_ends: ConnectionEnds) -> None:
    watchers, clients = Seats(MAX_WATCHERS), Seats(MAX_WATCHERS)
    lock = PlaybackLock(playback)
    for path in ("/monitor", "/transport"):
        mount_only_socket(app, path)

    @app.websocket("/monitor")
    async def monitor(socket: WebSocket) -> None:
        check_query(socket, QUERY)  # which agents there are changes with the moment that is shown
        async with watchers.accept(socket) as has_seat:
            if has_seat:
                await serve_monitor(socket, playback, NoOrders(), connection_ends)

    @app.websocket("/transport")
    async def transport(socket: WebSocket) -> None:
        async with clients.accept(socket) as has_seat:
            if has_seat:
                await serve_transport(socket, lock, about, connection_ends)
