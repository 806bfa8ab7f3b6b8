"""``/calls`` of all robots: the routes that begin, show and cancel calls."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query, Response
from fastapi.responses import JSONResponse

from dimos_streams import clock
from dimos_streams.bridge.calls.call_pages import DEFAULT_LIMIT, PAGE_BYTES
from dimos_streams.bridge.http.call_routes import (
    DEFAULT_WAIT_S,
    CallBody,
    CancelRequest,
    Wait,
    WaitAtMost,
    WaitFor,
)
from dimos_streams.bridge.http.call_views import PAGE_END, Limit, OfState
from dimos_streams.errors import UnknownCallError
from dimos_streams.fleet.protocol import RobotName
from dimos_streams.hub.asking import ORDER_WAITS_S, BridgeReply, BridgeRequest, within
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import ASKING, asked, refused
from dimos_streams.hub.http.robot_names import OfRobot, check_robot
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.rows import RobotCallRow, StorageUnavailableError, WrongSchemaError
from dimos_streams.hub.threads import in_thread
from dimos_streams.serving import links, problem_kinds
from dimos_streams.serving.events.parameters import OFFSETS_END
from dimos_streams.serving.openapi import answers, refusals
from dimos_streams.serving.problems import MEDIA_TYPE, ProblemError
from dimos_streams.tool_stream.event import is_call_id, json_text


class FleetCallBody(CallBody):
    """Body of ``POST /calls``."""

    robot: RobotName | None = None
    """The robot that is to do it. It may be left out where a single one has such a skill, or where the skill's name
    has the robot's before it: ``r1_turn`` or ``r1/turn``."""


def mount_calls(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""
    _mount_begin(app, parts)
    _mount_looks(app, parts)

    @app.post(
        "/calls/{call_id}/cancel",
        status_code=202,
        response_class=Response,
        response_model=None,
        responses=answers(202, "The call as it stands.", {"type": "object"}, media_type="application/json")
        | refusals(
            *ASKING,
            hub_kinds.ROBOT_NEEDED,
            problem_kinds.UNKNOWN_CALL,
            problem_kinds.CALL_REJECTED,
            takes_body=True,
        ),
    )
    async def cancel(call_id: str, body: CancelRequest | None = None, robot: OfRobot = None) -> Response:
        name = robot or await _robot_of(parts, call_id)
        path = f"/calls/{quote(call_id, safe='')}/cancel"
        order = (body or CancelRequest()).model_dump()
        reply = await asked(parts, BridgeRequest(name, "POST", path, order))
        return as_response(replace(reply, headers={}))


def _mount_begin(app: FastAPI, parts: HubParts) -> None:
    @app.post(
        "/calls",
        status_code=201,
        response_class=Response,
        response_model=None,
        responses=answers(
            201,
            "The call was requested at its robot; with `wait`, as it is after that.",
            {"type": "object"},
            media_type="application/json",
            Location="The call.",
            Link=links.EVENTS,
        )
        | refusals(*ASKING, *problem_kinds.BEGINNING, hub_kinds.ROBOT_NEEDED, takes_body=True),
    )
    async def call(
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
            first = await _first_event(parts, robot, reply, next_event) if has_key else next_event
            headers["Link"] = links.events_from(first)
        return as_response(replace(reply, headers=headers))


def _mount_looks(app: FastAPI, parts: HubParts) -> None:
    @app.get(
        "/calls",
        response_class=Response,
        response_model=None,
        responses=answers(
            200,
            "Calls, oldest first, as far as their events have come.",
            {"type": "array", "items": {"type": "object"}},
            media_type="application/json",
            Link=links.OLDER,
        )
        | refusals(hub_kinds.HUB_UNAVAILABLE, problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST),
    )
    async def calls(
        state: OfState = None,
        robot: OfRobot = None,
        limit: Limit = DEFAULT_LIMIT,
        before: Annotated[int | None, Query(ge=1, lt=OFFSETS_END, description=PAGE_END)] = None,
    ) -> Response:
        await check_robot(parts, robot)
        with refused():
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

    @app.get(
        "/calls/{call_id}",
        response_model=dict[str, Any],
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
            if call_id not in parts.begun or robot not in (None, parts.begun[call_id]):
                raise
            with _as_unknown(call_id):
                return as_response(await ask_for(parts, call_id))
        return Response(row.record, media_type="application/json")


async def begin(
    parts: HubParts, body: FleetCallBody, wait: Wait | None, timeout_s: float, *, model: bool = False
) -> tuple[str, BridgeReply]:
    """Begin a call at its robot, for a ``model``, or for somebody with an operator's rights; return the robot, and
    its bridge's reply. Raises ``ProblemError`` and ``UnknownSkillError``."""
    asked_at = clock.steady()
    with refused():
        async with within(ORDER_WAITS_S):
            robot, skill = await _meant(parts, body)
    path = "/calls" if wait is None else f"/calls?{urlencode({'wait': wait, 'timeout_s': timeout_s})}"
    request = BridgeRequest(
        robot,
        "POST",
        path,
        body.model_dump(mode="json", exclude={"robot"}, exclude_none=True) | {"skill": skill},
        asked_by=body.caller,
        role="model" if model else "operator",
        key=_key(body, path),
        lease_wait_s=body.lease_wait_s,
        timeout_s=None if wait is None else timeout_s,
        asked_at=asked_at,
    )
    reply = await asked(parts, request)
    call_id = reply.body.get("call_id") if isinstance(reply.body, dict) else None
    if isinstance(call_id, str):
        parts.begun[call_id] = robot
    return robot, reply


async def _robot_of(parts: HubParts, call_id: str) -> str:
    """The robot of a call, also of one that was begun here and of which no event has come yet. Raises as ``find``."""
    try:
        return (await find(parts, call_id, None, for_order=True)).robot
    except UnknownCallError:
        if call_id not in parts.begun:
            raise
        return parts.begun[call_id]


async def ask_for(parts: HubParts, call_id: str) -> BridgeReply:
    """The state of a call that was begun here, as its robot's bridge says it. Raises ``ProblemError``."""
    robot = parts.begun[call_id]
    reply = await asked(parts, BridgeRequest(robot, "GET", f"/calls/{quote(call_id, safe='')}", role="model"))
    body = reply.body | {"robot": robot} if reply.status == 200 and isinstance(reply.body, dict) else reply.body
    return replace(reply, body=body, headers={})


@contextlib.contextmanager
def _as_unknown(call_id: str) -> Iterator[None]:
    """Raise ``UnknownCallError`` where its robot can't be asked for a call."""
    try:
        yield
    except ProblemError as error:
        raise UnknownCallError(call_id) from error


async def _first_event(parts: HubParts, robot: str, reply: BridgeReply, next_event: int) -> int:
    """A number that is not behind the first event of a call with an idempotency key that a bridge says it has: it may
    have begun before ``next_event``, which is what is known if the database does not say."""
    call_id = reply.body.get("call_id") if isinstance(reply.body, dict) else None
    if not (isinstance(call_id, str) and is_call_id(call_id)):
        return next_event
    try:
        rows = await in_thread(parts.threads.orders, parts.storage.calls.find, call_id)
    except (StorageUnavailableError, WrongSchemaError):
        return next_event  # the call has begun all the same, and what it says from now on can be read
    return min([next_event, *(row.first_seq for row in rows if row.robot == robot)])


def _key(body: FleetCallBody, path: str) -> str | None:
    """The key of a command, the same for requests with one idempotency key that wait in the same way. Requests that
    wait otherwise are other commands, which the bridge finds to be about one call. None without an idempotency
    key."""
    if body.idempotency_key is None:
        return None
    what = [body.caller, body.idempotency_key, path, body.lease_wait_s, body.on_duplicate]
    return hashlib.sha256(json_text(what).encode()).hexdigest()


async def find(parts: HubParts, call_id: str, robot: str | None, *, for_order: bool = False) -> RobotCallRow:
    """A call of which events have come; an order waits for nobody who only looks.

    Raises ``UnknownCallError`` and ``ProblemError``.
    """
    if not is_call_id(call_id):
        raise UnknownCallError(call_id)
    threads = parts.threads.orders if for_order else parts.threads.pages
    with refused():
        async with within(ORDER_WAITS_S):
            rows = await in_thread(threads, parts.storage.calls.find, call_id)
    rows = [row for row in rows if robot in (None, row.robot)]
    if not rows:
        raise UnknownCallError(call_id)
    if len(rows) > 1:
        names = ", ".join(row.robot for row in rows)
        raise ProblemError(
            hub_kinds.ROBOT_NEEDED, f"several robots have a call {call_id!r}: add ?robot=, one of {names}"
        )
    return rows[0]


def as_response(reply: BridgeReply) -> Response:
    """Turn a bridge's answer into the hub's own."""
    if reply.body is None and reply.status in (204, 205):
        return Response(status_code=reply.status, headers=reply.headers)
    media_type = MEDIA_TYPE if reply.status >= 400 else "application/json"
    return JSONResponse(reply.body, reply.status, headers=reply.headers, media_type=media_type)


async def _meant(parts: HubParts, body: FleetCallBody) -> tuple[str, str]:
    """The robot that a call is for, and its skill. Raises ``ProblemError`` and ``UnknownSkillError``."""
    if body.robot is not None:
        return body.robot, body.skill
    with refused():
        if body.agent is not None:
            found = [(robot, body.skill) for robot in (await parts.robots.all()).values()]
        else:
            found = await parts.robots.meant(body.skill)
    # Whether another one is connected changes from one moment to the next: no robot moves because one has left.
    if len(found) == 1:
        return found[0][0].name, found[0][1]
    names = ", ".join(sorted(robot.name for robot, _ in found)[:50]) or "none is known"
    raise ProblemError(
        hub_kinds.ROBOT_NEEDED, f"{body.skill!r} could be meant for several robots: give `robot`, one of {names}"
    )


def _within(rows: list[RobotCallRow]) -> list[RobotCallRow]:
    """The first rows that fit into a page, one at least."""
    size = 0
    for index, row in enumerate(rows):
        size += len(row.record)
        if index and size > PAGE_BYTES:
            return rows[:index]
    return rows
