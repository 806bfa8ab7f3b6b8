"""The routes that serve the events of all robots: a stream, and pages for those who look back."""

from __future__ import annotations

from fastapi import FastAPI, Response

from dimos_streams.errors import UnknownCallError
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import bounded_read
from dimos_streams.hub.http.robot_names import OfRobot, check_robot
from dimos_streams.hub.parts import HubParts
from dimos_streams.journal.query import QueryBack
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.events import pages
from dimos_streams.serving.events.parameters import From, LastEventId, LastRead, OfCall, OfCaller, after_offset
from dimos_streams.serving.events.stream import EventStream
from dimos_streams.serving.openapi import event_stream, refusals
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

_OWN_KINDS = (
    problem_kinds.UNKNOWN_CALL,
    problem_kinds.UNKNOWN_ROBOT,
    problem_kinds.BAD_REQUEST,
    hub_kinds.HUB_UNAVAILABLE,
)
_STREAM = event_stream("the number in the hub's sequence", "the event's fields and the robot's name")


def mount_events(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""
    _mount_stream(app, parts)

    @app.get(
        "/events",
        response_class=Response,
        response_model=None,
        responses=pages.ANSWER | refusals(*_OWN_KINDS),
    )
    async def events(
        robot: OfRobot = None,
        call: OfCall = None,
        caller: OfCaller = None,
        before: pages.Before = pages.NEWEST,
        limit: pages.Limit = pages.DEFAULT_LIMIT,
        progress: pages.Progress = False,
    ) -> Response:
        await _check(parts, call, robot)
        async with bounded_read():
            query = QueryBack(before, caller and _storable(caller), call, robot, progress)
            return await pages.page_back(parts.feed.broadcast, query, limit)


def _mount_stream(app: FastAPI, parts: HubParts) -> None:
    @app.get("/tool_streams", response_class=Response, response_model=None, responses=_STREAM | refusals(*_OWN_KINDS))
    async def tool_streams(
        robot: OfRobot = None,
        call: OfCall = None,
        caller: OfCaller = None,
        from_: From = None,
        last_event_id: LastEventId = None,
        last_read: LastRead = None,
    ) -> EventStream:
        await _check(parts, call, robot)
        return EventStream(
            parts.feed.broadcast,
            after=after_offset(last_event_id or last_read, from_),
            caller=caller and _storable(caller),
            call_id=call,
            robot=robot,
            ping_s=parts.settings.ping_s,
            connection_ends=parts.connection_ends,
        )


def _storable(caller: str) -> str:
    """The name of a caller as a database can be asked for it: it can't have U+0000 in a text, nor can any name."""
    return caller.replace("\0", "\ufffd")


async def _check(parts: HubParts, call: str | None, robot: str | None) -> None:
    """Raise an error for a text that can't be a call's id, and for a robot that the fleet does not have."""
    if call is not None and not is_call_id(call):
        raise UnknownCallError(call)
    await check_robot(parts, robot)
