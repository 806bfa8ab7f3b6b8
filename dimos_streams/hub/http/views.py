"""``/healthz`` and ``/metrics`` of a hub, and its event stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from dimos_streams import __version__
from dimos_streams.bridge.calls.broker import UnknownCallError
from dimos_streams.bridge.http import problem_kinds
from dimos_streams.bridge.http.described import answers, refusals
from dimos_streams.bridge.http.events import pages
from dimos_streams.bridge.http.events.options import LastEventId, after_offset
from dimos_streams.bridge.http.events.stream import EventStream
from dimos_streams.bridge.http.metrics import Family, counter, gauge
from dimos_streams.bridge.journal.query import QueryBack
from dimos_streams.hub.http import kinds
from dimos_streams.hub.http.call_routes import RobotQuery
from dimos_streams.hub.http.refusing import refused
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.schema import SCHEMA
from dimos_streams.tool_stream.event import is_call_id


def mount_views(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""

    @app.get("/healthz", responses=refusals())
    async def healthz() -> dict[str, Any]:
        trouble = parts.intake.trouble or parts.feed.trouble
        robots = list(parts.robots.known.values())
        readers = parts.feed.broadcast.statistics()
        return {
            "status": "degraded" if trouble else "ok",
            "database": trouble or "ok",
            "lost": [],
            "name": parts.name,
            "version": __version__,
            "schema": SCHEMA,
            "others": [{"name": name, "version": version, "url": url} for name, version, url in parts.others()],
            "offset": parts.feed.log.last_offset,
            "first_offset": parts.feed.broadcast.first_offset,
            "counts": {
                "robots": len(robots),
                "connected": sum(robot.row.connected for robot in robots),
                "connected_here": len(parts.streams),
                "open_calls": sum(robot.open_calls for robot in robots),
                "leases": {},
                "broadcast": asdict(readers),
                "receiver": {"delivered": parts.intake.entries, "gaps": readers.gaps, "malformed": 0},
            },
        }

    registry = CollectorRegistry()
    registry.register(HubCollector(parts))

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals())
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def mount_streams(app: FastAPI, parts: HubParts) -> None:
    """Add the routes for the events of all robots."""

    @app.get(
        "/tool_streams",
        response_class=Response,
        response_model=None,
        responses=answers(
            200,
            "Server-sent events of type `tool_stream` for as long as the client reads: `id` is the number in the"
            " hub's sequence, `data` a JSON object with the event's fields and the robot's name.",
            {"type": "string"},
            media_type="text/event-stream",
        )
        | refusals(problem_kinds.UNKNOWN_CALL, problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST),
    )
    async def tool_streams(
        robot: RobotQuery = None,
        call: str | None = None,
        caller: str | None = None,
        from_: Annotated[int | None, Query(alias="from", ge=0, lt=2**53)] = None,
        last_event_id: Annotated[LastEventId | None, Header()] = None,
    ) -> EventStream:
        await _check(parts, call, robot)
        return EventStream(
            parts.feed.broadcast,
            after=after_offset(last_event_id, from_),
            caller=caller,
            call_id=call,
            robot=robot,
            ping_s=parts.settings.ping_s,
            send_timeout_s=parts.settings.send_timeout_s,
            abort=parts.abort,
        )

    @app.get(
        "/events",
        response_class=Response,
        response_model=None,
        responses=pages.ANSWER
        | refusals(
            kinds.HUB_UNAVAILABLE,
            problem_kinds.UNKNOWN_CALL,
            problem_kinds.UNKNOWN_ROBOT,
            problem_kinds.BAD_REQUEST,
        ),
    )
    async def events(
        robot: RobotQuery = None,
        call: str | None = None,
        caller: str | None = None,
        before: pages.Before = pages.NEWEST,
        limit: pages.Limit = pages.DEFAULT_LIMIT,
        progress: pages.Progress = False,
    ) -> Response:
        await _check(parts, call, robot)
        with refused():
            query = QueryBack(before, caller, call, robot, progress)
            return await pages.page_back(parts.feed.broadcast, query, limit)


async def _check(parts: HubParts, call: str | None, robot: str | None) -> None:
    if call is not None and not is_call_id(call):
        raise UnknownCallError(call)
    if robot is not None:
        with refused():
            await parts.robots.named(robot)


class HubCollector(Collector):
    """Reads what a hub counts anyway when it is scraped; nothing here asks the database."""

    def __init__(self, parts: HubParts) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Family]:
        """The families of metrics, each once."""
        feed, intake, robots = self._parts.feed, self._parts.intake, self._parts.robots.known
        streams = feed.broadcast.statistics()
        yield gauge("hub_ok", "1 while the database takes and gives events.", not (intake.trouble or feed.trouble))
        yield gauge("hub_first_offset", "The oldest number in the sequence.", feed.broadcast.first_offset)
        yield gauge("hub_last_offset", "The newest number that this hub has read.", feed.log.last_offset)
        yield counter(
            "hub_entries", "Events of robots taken by this hub, again or for the first time.", intake.entries
        )
        yield gauge("hub_pace_seconds", "The pause between batches that robots are asked for.", intake.pace_s)
        yield gauge("hub_database_bytes", "Bytes that the database used lately.", self._parts.database_bytes())
        yield gauge(
            "hub_streams_here", "Robots that hold a stream of commands at this hub.", len(self._parts.streams)
        )
        connected = {name: robot.row.connected for name, robot in robots.items()}
        yield gauge("robot_connected", "Whether a robot is connected, at any hub.", ("robot", connected))
        yield gauge("streams_open", "Readers of events now.", streams.readers)
        yield gauge("streams_lag", "Events that the slowest reader is behind.", streams.lag)
        yield counter("streams_cut", "Clients cut off because they did not read.", streams.cut)
        yield counter("streams_coalesced", "Progress left out for slow readers.", streams.coalesced)
        yield counter("streams_gaps", "Gap events that readers got.", streams.gaps)
