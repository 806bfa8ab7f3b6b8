"""The HTTP surface of the bridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.types import ASGIApp

from dimos_streams import __version__
from dimos_streams.bridge.calls.broker import Broker, UnknownCallError
from dimos_streams.bridge.http import event_pages, problems
from dimos_streams.bridge.http import problem_kinds as kinds
from dimos_streams.bridge.http.call_routes import mount_calls
from dimos_streams.bridge.http.described import answers, describe, refusals
from dimos_streams.bridge.http.event_stream import EventStream
from dimos_streams.bridge.http.metrics import registry_of
from dimos_streams.bridge.http.pictures import mount_pictures
from dimos_streams.bridge.http.robots import mount_robots
from dimos_streams.bridge.http.route import BridgeRoute, answer_head
from dimos_streams.bridge.http.serving.request_guard import Guard
from dimos_streams.bridge.http.serving.request_order import RequestOrder
from dimos_streams.bridge.http.settings import mount_settings
from dimos_streams.bridge.http.stream_options import LastEventId, StreamOptions, after_offset
from dimos_streams.bridge.journal.broadcast import JournalBroadcast
from dimos_streams.bridge.journal.query import QueryBack
from dimos_streams.bridge.live.routes import mount_live
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.routes import mount_mcp
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.monitor.monitor import Monitor
from dimos_streams.bridge.monitor.routes import mount_monitor
from dimos_streams.dashboard.serving import PATHS, mount_dashboard
from dimos_streams.tool_stream.event import is_call_id
from dimos_streams.tool_stream.gateway import OfferedSkill
from dimos_streams.tool_stream.liveness.module_view import ModuleView


def create_app(
    broker: Broker,
    broadcast: JournalBroadcast,
    *,
    monitor: Monitor | None = None,
    live: LiveTopics | None = None,
    streams: StreamOptions | None = None,
    abort: Callable[[object], None] | None = None,
    run_dir: Path | None = None,
    disk: Callable[[], str] = lambda: "",
    fleet_hub: Callable[[], dict[str, Any] | None] = lambda: None,
) -> FastAPI:
    """Create the app, without its guard. ``abort`` ends the connection of a client address at once; ``run_dir`` is
    the folder with the run's files, None if there is none; ``disk`` returns the reason why they can't be written,
    empty if they can; ``fleet_hub`` returns the state of the link to a hub, None if there is no link."""
    options = streams or StreamOptions()
    abort = abort or (lambda client: None)
    app = FastAPI(
        title="dimos-streams bridge", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.router.route_class = BridgeRoute
    problems.install(app)
    describe(app)

    _mount_views(app, broker, broadcast, disk, fleet_hub)
    mount_calls(app, broker, broadcast)
    _mount_streams(app, broker, broadcast, options, abort)
    mount_robots(app, broker)
    mount_settings(app, broker)
    mount_pictures(app, run_dir)
    if live is not None:
        mount_live(app, live, send_timeout_s=options.send_timeout_s, abort=abort)
    if monitor is not None:
        mount_monitor(app, monitor, broker, send_timeout_s=options.send_timeout_s, abort=abort)
        mount_dashboard(app)
    mount_mcp(app, McpServer(BrokerCalls(broker), broadcast))
    answer_head(app)
    return app


def guarded(app: ASGIApp, *, host: str, token: str | None, allowed_hosts: tuple[str, ...] = ()) -> ASGIApp:
    """The app behind its guard, as it is served."""
    return Guard(RequestOrder(app), host=host, token=token, allowed_hosts=allowed_hosts, public=PATHS)


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
        journal, receiver = broadcast.journal, broker.receiver.statistics()
        lost = ["events, at the bridge's end: the journal is in memory"] if journal.state != "ok" else []
        if trouble := disk():
            lost += ["logs", "mission records", "pictures"]
        if broker.is_deaf:
            lost.append("what is said on the bus: the bridge does not even hear itself")
        return {
            "status": "degraded" if lost else "ok",
            "disk": trouble or "ok",
            "lost": lost,
            "stopped": broker.stops.stopped().model_dump(mode="json"),
            "not_ending": [call.model_dump(mode="json") for call in broker.stops.lingering()],
            "unwell": broker.directory.unwell(),
            "journal": {
                "state": journal.state,
                "first_offset": journal.first_offset,
                "last_offset": journal.last_offset,
                "bytes": journal.size(),
            },
            "hub": fleet_hub(),
            "offset": broadcast.last_offset,
            "counts": {
                "modules": broker.directory.count,
                "open_calls": len(broker.ledger.calls.open),
                "leases": broker.ledger.leases.holders(),
                "broadcast": asdict(broadcast.statistics()),
                "receiver": asdict(receiver),
            },
        }

    registry = registry_of(broker, broadcast)

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals())
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.get("/skills", responses=refusals())
    async def skills() -> list[OfferedSkill]:
        return await broker.skills()

    @app.get("/modules", responses=refusals())
    async def modules() -> list[dict[str, Any]]:
        return [_module(module) for module in await broker.modules()]


def _module(module: ModuleView) -> dict[str, Any]:
    """A module for readers of HTTP: without its instance, by which its streams are bound to it on the bus."""
    fields = asdict(module)
    del fields["instance"]
    for rival in fields["rivals"]:
        del rival["id"]
    return {**fields, "alive": module.alive, "skills": [skill.name for skill in module.skills]}


def _mount_streams(
    app: FastAPI, broker: Broker, broadcast: JournalBroadcast, options: StreamOptions, abort: Callable[[object], None]
) -> None:
    """Add the routes that serve the events of all calls."""

    @app.get(
        "/tool_streams",
        response_class=Response,
        response_model=None,
        responses=answers(
            200,
            "Server-sent events of type `tool_stream` for as long as the client reads: `id` is the offset, `data` a "
            "JSON object with the event's fields, `#/components/schemas/ToolStreamEvent`.",
            {"type": "string"},
            media_type="text/event-stream",
        )
        | refusals(kinds.NOT_FOUND, kinds.UNKNOWN_CALL, kinds.BAD_REQUEST),
    )
    async def tool_streams(
        call: str | None = None,
        caller: str | None = None,
        from_: Annotated[int | None, Query(alias="from", ge=0, lt=2**53)] = None,
        last_event_id: Annotated[LastEventId | None, Header()] = None,
    ) -> EventStream:
        _check_call(broker, call)
        return EventStream(
            broadcast,
            after=after_offset(last_event_id, from_),
            caller=caller,
            call_id=call,
            ping_s=options.ping_s,
            send_timeout_s=options.send_timeout_s,
            abort=abort,
        )

    @app.get(
        "/events",
        response_class=Response,
        response_model=None,
        responses=event_pages.ANSWER | refusals(kinds.NOT_FOUND, kinds.UNKNOWN_CALL, kinds.BAD_REQUEST),
    )
    async def events(
        call: str | None = None,
        caller: str | None = None,
        before: event_pages.Before = event_pages.NEWEST,
        limit: event_pages.Limit = event_pages.DEFAULT_LIMIT,
        progress: event_pages.Progress = False,
    ) -> Response:
        _check_call(broker, call)
        return await event_pages.page_back(broadcast, QueryBack(before, caller, call, progress=progress), limit)


def _check_call(broker: Broker, call: str | None) -> None:
    """Raise an error for a text that can't be a call's id, and for a call whose events are not kept. An unknown id
    passes: whoever calls on the bus chooses it, perhaps later, and events outlast their calls."""
    if call is not None and not is_call_id(call):
        raise UnknownCallError(call)
    if call is not None and not broker.journals(call):
        why = f"the events of call {call!r} are not kept: WS /monitor has what it reports"
        raise problems.ProblemError(kinds.NOT_FOUND, why)
