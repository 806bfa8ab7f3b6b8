"""The HTTP surface of the bridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Query, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from dimos_streams import __version__
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.call_pages import DEFAULT_LIMIT, MAX_LIMIT, BadCursorError, CallQuery, Cursor
from dimos_streams.bridge.http import problems
from dimos_streams.bridge.http.dashboard.routes import PATHS, mount_dashboard
from dimos_streams.bridge.http.event_stream import EventStream
from dimos_streams.bridge.http.metrics import registry_of
from dimos_streams.bridge.http.request_guard import Guard
from dimos_streams.bridge.http.request_order import RequestOrder
from dimos_streams.bridge.http.strict_json import StrictJsonRoute
from dimos_streams.bridge.journal.broadcast import Hub
from dimos_streams.bridge.mcp.routes import mount_mcp
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.monitor.monitor import Monitor
from dimos_streams.bridge.monitor.routes import mount_monitor
from dimos_streams.operator.agents import agents_among, choose_agent
from dimos_streams.skill import OnDuplicate, OnLoss
from dimos_streams.tool_stream.event import MAX_NAME
from dimos_streams.tool_stream.gateway import CallView, OfferedSkill

MAX_WAIT_S = 300.0
_MAX_LEASE_WAIT_S = 60.0

Wait = Literal["answer", "close"]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class CallBody(BaseModel):
    """Body of ``POST /calls``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    skill: Name
    agent: Annotated[str, Field(max_length=MAX_NAME)] | None = None
    """The agent whose ``skill`` it is, by the name of its module or namespace, empty for the only agent; ``skill`` is
    then without the namespace."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    caller: Name = "http"
    on_duplicate: OnDuplicate | None = None
    idempotency_key: Name | None = None
    lease_wait_s: float = Field(default=0.0, ge=0, le=_MAX_LEASE_WAIT_S)
    """How long the call may wait for a resource that another one holds."""
    on_loss: OnLoss | None = None
    """Whether it is to stop or to go on when a link is cut; without it its skill decides."""


class CancelRequest(BaseModel):
    """Body of ``POST /calls/{id}/cancel``; it may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: str = Field(default="cancelled over HTTP", max_length=4000)


class StreamOptions(BaseModel):
    """How event streams treat their clients."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ping_s: float = Field(default=10.0, gt=0)
    """Pause without events after which a comment is sent."""
    send_timeout_s: float = Field(default=20.0, gt=0)
    """A client that takes nothing for so long is cut off."""


def create_app(
    broker: Broker,
    hub: Hub,
    *,
    monitor: Monitor | None = None,
    streams: StreamOptions | None = None,
    abort: Callable[[object], None] | None = None,
    disk: Callable[[], str] = lambda: "",
) -> FastAPI:
    """The app, unguarded. ``abort`` ends the connection of a client address at once; ``disk`` says why the run's
    files can't be written, empty if they can."""
    options = streams or StreamOptions()
    abort = abort or (lambda client: None)
    app = FastAPI(title="dimos-streams bridge", version=__version__, docs_url=None, redoc_url=None)
    app.router.route_class = StrictJsonRoute
    problems.install(app)

    _mount_views(app, broker, hub, disk)
    _mount_calls(app, broker, hub)
    _mount_streams(app, broker, hub, options, abort)
    if monitor is not None:
        mount_monitor(app, monitor, broker, send_timeout_s=options.send_timeout_s, abort=abort)
        mount_dashboard(app)
    mount_mcp(app, McpServer(broker, hub))
    return app


def guarded(app: ASGIApp, *, host: str, token: str | None, allowed_hosts: tuple[str, ...] = ()) -> ASGIApp:
    """The app behind its guard: what is served."""
    return Guard(RequestOrder(app), host=host, token=token, allowed_hosts=allowed_hosts, public=PATHS)


def _mount_views(app: FastAPI, broker: Broker, hub: Hub, disk: Callable[[], str]) -> None:
    """Add the routes that show what there is and how it stands."""

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        journal, receiver, modules = hub.journal, broker.receiver.statistics(), broker.directory.modules()
        lost = ["events, at the bridge's end: the journal is in memory"] if journal.state != "ok" else []
        if trouble := disk():
            lost += ["logs", "mission records", "pictures"]
        return {
            "status": "degraded" if lost else "ok",
            "disk": trouble or "ok",
            "lost": lost,
            "unwell": {view.name: view.health for view in modules if view.health != "ok"},
            "journal": {
                "state": journal.state,
                "first_offset": journal.first_offset,
                "last_offset": journal.last_offset,
                "bytes": journal.size(),
            },
            "offset": hub.last_offset,
            "counts": {
                "modules": len(modules),
                "open_calls": len(broker.ledger.calls.open),
                "leases": broker.ledger.leases.holders(),
                "hub": asdict(hub.statistics()),
                "receiver": asdict(receiver),
            },
        }

    registry = registry_of(broker, hub)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.get("/skills")
    async def skills() -> list[OfferedSkill]:
        return await broker.skills()

    @app.get("/modules")
    async def modules() -> list[dict[str, Any]]:
        return [
            {**asdict(module), "alive": module.alive, "skills": [skill.name for skill in module.skills]}
            for module in await broker.modules()
        ]


def _mount_calls(app: FastAPI, broker: Broker, hub: Hub) -> None:
    """Calls: begun, looked at, cancelled."""

    @app.post("/calls", status_code=201)
    async def call(
        body: CallBody,
        wait: Wait | None = None,
        timeout_s: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 30.0,
    ) -> JSONResponse:
        first = hub.last_offset + 1
        call_id = await broker.call(
            body.skill if body.agent is None else await _skill_of_agent(broker, body.agent, body.skill),
            body.arguments,
            caller=body.caller,
            on_duplicate=body.on_duplicate,
            idempotency_key=body.idempotency_key,
            lease_wait_s=body.lease_wait_s,
            on_loss=body.on_loss,
        )
        content: dict[str, Any] = {"call_id": call_id}
        if wait is not None:
            ended = await broker.wait(call_id, wait, timeout_s)
            view = await broker.view(call_id)
            content = {**view.model_dump(mode="json"), "waited": wait if ended else "timed_out"}
        return JSONResponse(content, 201, headers=_where(call_id, first))

    @app.get("/calls", response_model=list[CallView])
    async def calls(
        state: Literal["open", "closed"] | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        before: Annotated[str | None, Query(description="Where a page ends; the Link header has it.")] = None,
    ) -> Response:
        try:
            query = CallQuery(state, None if before is None else Cursor.parse(before), limit)
        except BadCursorError as error:
            raise HTTPException(422, str(error)) from error
        page = query.page(broker.ledger.calls)
        headers = {} if page.before is None else {"Link": query.link(page.before)}
        return Response(page.body, headers=headers, media_type="application/json")

    @app.get("/calls/{call_id}")
    async def one_call(call_id: str) -> CallView:
        return await broker.view(call_id)

    @app.post("/calls/{call_id}/cancel", status_code=202)
    async def cancel(call_id: str, body: CancelRequest | None = None) -> CallView:
        await broker.cancel(call_id, (body or CancelRequest()).reason)
        return await broker.view(call_id)


async def _skill_of_agent(broker: Broker, agent: str, skill: str) -> str:
    """The public name of an agent's skill. Raises ``UnknownAgentError``."""
    return choose_agent(agents_among(await broker.skills()), agent).skill(skill)


def _where(call_id: str, first: int) -> dict[str, str]:
    """The headers that lead to a call, and to the events of all calls since before it began (RFC 8288)."""
    return {"Location": f"/calls/{call_id}", "Link": f'</tool_streams?from={first}>; rel="events"'}


def _mount_streams(
    app: FastAPI, broker: Broker, hub: Hub, options: StreamOptions, abort: Callable[[object], None]
) -> None:
    """The events of all calls."""

    @app.get("/tool_streams", response_model=None)
    async def tool_streams(
        call: str | None = None,
        caller: str | None = None,
        from_: Annotated[int | None, Query(alias="from", ge=0, lt=2**53)] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> EventStream:
        if call is not None and not broker.journals(call):
            raise HTTPException(404, f"the events of call {call!r} are not kept: WS /monitor has what it reports")
        return EventStream(
            hub,
            after=_after(last_event_id, from_),
            caller=caller,
            call_id=call,
            ping_s=options.ping_s,
            send_timeout_s=options.send_timeout_s,
            abort=abort,
        )


def _after(last_event_id: str | None, from_offset: int | None) -> int | None:
    """The offset behind which a stream begins; what the client has read counts more than what it once asked for."""
    if last_event_id:
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 17):
            raise HTTPException(400, f"Last-Event-ID {last_event_id[:50]!r} is not an offset")
        return int(last_event_id)
    return None if from_offset is None else max(0, from_offset - 1)
