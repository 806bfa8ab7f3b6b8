"""``/calls`` of all robots: the routes that begin, show and cancel calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Query, Response

from dimos_streams.bridge.calls.call_pages import DEFAULT_LIMIT, PAGE_BYTES
from dimos_streams.bridge.http.call_routes import (
    DEFAULT_WAIT_S,
    BegunCall,
    CancelRequest,
    WaitAtMost,
    WaitedCall,
    WaitFor,
)
from dimos_streams.bridge.http.call_views import PAGE_END, Limit, OfState
from dimos_streams.errors import UnknownCallError
from dimos_streams.hub.asking import BridgeRequest
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import ASKING, ask_bridge, bounded_read
from dimos_streams.hub.http.robot_calls import (
    FleetCallBody,
    as_response,
    ask_for,
    begin,
    begun_at,
    find,
    first_event,
    robot_of_call,
)
from dimos_streams.hub.http.robot_names import OfRobot, check_robot
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.rows import RobotCallRow
from dimos_streams.hub.threads import in_thread
from dimos_streams.serving import links, problem_kinds
from dimos_streams.serving.events.parameters import OFFSETS_END
from dimos_streams.serving.openapi import answers, refusals
from dimos_streams.serving.problems import ProblemError
from dimos_streams.tool_stream.gateway import CallView


def mount_calls(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""
    _mount_begin(app, parts)
    _mount_list(app, parts)
    _mount_one(app, parts)

    @app.post(
        "/calls/{call_id}/cancel",
        status_code=202,
        response_model=CallView,
        responses=answers(202, "The call as it stands.")
        | refusals(
            *ASKING,
            hub_kinds.ROBOT_NEEDED,
            problem_kinds.UNKNOWN_CALL,
            problem_kinds.CALL_REJECTED,
            takes_body=True,
        ),
    )
    async def cancel_call(call_id: str, body: CancelRequest | None = None, robot: OfRobot = None) -> Response:
        name = robot or await robot_of_call(parts, call_id)
        path = f"/calls/{quote(call_id, safe='')}/cancel"
        order = (body or CancelRequest()).model_dump()
        reply = await ask_bridge(parts, BridgeRequest(name, "POST", path, order))
        return as_response(replace(reply, headers={}))


def _mount_begin(app: FastAPI, parts: HubParts) -> None:
    @app.post(
        "/calls",
        status_code=201,
        response_model=WaitedCall | BegunCall,  # clients take the first that fits
        responses=answers(
            201,
            "The call was requested at its robot; with `wait`, as it is after that.",
            Location="The call.",
            Link=links.EVENTS,
        )
        | refusals(*ASKING, *problem_kinds.BEGINNING, hub_kinds.ROBOT_NEEDED, takes_body=True),
    )
    async def begin_call(
        body: FleetCallBody,
        wait: WaitFor = None,
        timeout_s: WaitAtMost = DEFAULT_WAIT_S,
    ) -> Response:
        next_event = parts.feed.broadcast.last_offset + 1
        robot, reply = await begin(parts, body, wait, timeout_s)
        headers = {name: value for name, value in reply.headers.items() if name != "Link"}
        if "Link" in reply.headers:
            # Without a key the call is a new one, so its first event is still to come.
            has_key = body.idempotency_key is not None
            first = await first_event(parts, robot, reply, next_event) if has_key else next_event
            headers["Link"] = links.events_from(first)
        return as_response(replace(reply, headers=headers))


def _mount_list(app: FastAPI, parts: HubParts) -> None:
    @app.get(
        "/calls",
        response_model=list[CallView],
        responses=answers(200, "Calls, oldest first, as far as their events have come.", Link=links.OLDER)
        | refusals(hub_kinds.HUB_UNAVAILABLE, problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST),
    )
    async def calls(
        state: OfState = None,
        robot: OfRobot = None,
        limit: Limit = DEFAULT_LIMIT,
        before: Annotated[int | None, Query(ge=1, lt=OFFSETS_END, description=PAGE_END)] = None,
    ) -> Response:
        await check_robot(parts, robot)
        async with bounded_read():
            rows = await in_thread(
                parts.threads.pages,
                lambda: parts.storage.calls.newest(
                    limit, robot=robot, state=state, before=before, max_bytes=PAGE_BYTES
                ),
            )
        shown = _within(rows)
        more = len(shown) < len(rows) or len(rows) == limit
        end = shown[-1].first_seq if shown else None
        link = links.older("/calls", state=state, robot=robot, limit=limit, before=end)
        headers = {"Link": link} if more else {}
        body = f"[{','.join(row.record for row in reversed(shown))}]"
        return Response(body, headers=headers, media_type="application/json")


def _mount_one(app: FastAPI, parts: HubParts) -> None:
    @app.get(
        "/calls/{call_id}",
        response_model=CallView,
        responses=refusals(
            hub_kinds.HUB_UNAVAILABLE,
            hub_kinds.ROBOT_NEEDED,
            problem_kinds.UNKNOWN_CALL,
            problem_kinds.UNKNOWN_ROBOT,
            problem_kinds.BAD_REQUEST,
        ),
    )
    async def one_call(call_id: str, robot: OfRobot = None) -> Response:
        await check_robot(parts, robot)
        try:
            row = await find(parts, call_id, robot)
        except UnknownCallError:
            name = await begun_at(parts, call_id, robot)
            with _as_unknown(call_id, name):
                return as_response(await ask_for(parts, call_id, name))
        return Response(row.record, media_type="application/json")


@contextlib.contextmanager
def _as_unknown(call_id: str, robot: str) -> Iterator[None]:
    """Raise ``UnknownCallError`` where the robot at which a call was begun can't be asked for it."""
    try:
        yield
    except ProblemError as error:
        text = (
            f"call {call_id!r} was begun at robot {robot!r}, and no event of it has come; ask again: {error.detail}"
        )
        raise UnknownCallError(call_id, text) from error


def _within(rows: list[RobotCallRow]) -> list[RobotCallRow]:
    """The first rows that fit into a page, one at least."""
    size = 0
    for index, row in enumerate(rows):
        size += len(row.record.encode())
        if index and size > PAGE_BYTES:
            return rows[:index]
    return rows
