"""Calls of robots, whoever asks for them: how they are begun, found and asked for at their bridges."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, urlencode

from fastapi import Response
from fastapi.responses import JSONResponse

from dimos_streams import clock
from dimos_streams.bridge.http.call_routes import CallBody, Wait
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import UnknownCallError
from dimos_streams.fleet.protocol import RobotName
from dimos_streams.hub.asking import ORDER_WAITS_S, BridgeReply, BridgeRequest
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import ask_bridge, bounded_order
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.rows import RobotCallRow, StorageUnavailableError, WrongSchemaError
from dimos_streams.hub.threads import in_thread, within
from dimos_streams.serving.problems import MEDIA_TYPE, ProblemError
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

T = TypeVar("T")

_CALLS = "/calls"


class FleetCallBody(CallBody):
    """Body of ``POST /calls``."""

    robot: RobotName | None = None
    """The robot that is to do it. It may be left out where a single one has such a skill, or where the skill's name
    has the robot's before it: ``r1_turn`` or ``r1/turn``."""


async def begin(
    parts: HubParts, body: FleetCallBody, wait: Wait | None, timeout_s: float, *, model: bool = False
) -> tuple[str, BridgeReply]:
    """Begin a call at its robot, for a ``model``, or for somebody with an operator's rights; return the robot, and
    its bridge's reply. Raises ``ProblemError`` and ``UnknownSkillError``."""
    asked_at = clock.steady()
    async with bounded_order():
        robot, skill = await _meant(parts, body, is_own=model)
    path = _CALLS if wait is None else f"{_CALLS}?{urlencode({'wait': wait, 'timeout_s': timeout_s})}"
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
    reply = await ask_bridge(parts, request)
    if reply.call_id is not None:
        parts.begun[reply.call_id] = robot
    return robot, reply


async def find(parts: HubParts, call_id: str, robot: str | None, *, for_order: bool = False) -> RobotCallRow:
    """A call of which events have come; an order waits for nobody who only looks.

    Raises ``UnknownCallError`` and ``ProblemError``.
    """
    rows = await _looked_up(parts, parts.storage.calls.find, call_id, for_order=for_order)
    of_robots = {row.robot: row for row in rows}
    return of_robots[_only(call_id, robot, of_robots)]


async def robot_of_call(parts: HubParts, call_id: str) -> str:
    """The robot of a call, also of one of which no event has come yet. Raises as ``find``."""
    try:
        return (await find(parts, call_id, None, for_order=True)).robot
    except UnknownCallError:
        return await begun_at(parts, call_id, None, for_order=True)


async def begun_at(parts: HubParts, call_id: str, robot: str | None, *, for_order: bool = False) -> str:
    """The robot at which a call was begun lately, through whichever hub: its events may not have come. What was begun
    through another hub is in the database, as the answer of that robot. Raises as ``find``."""
    if call_id in parts.begun:
        return _only(call_id, robot, [parts.begun[call_id]])
    robots = await _looked_up(parts, parts.storage.calls.begun_at, call_id, for_order=for_order)
    return _only(call_id, robot, robots)


async def begun_with(parts: HubParts, caller: str, key: str) -> tuple[str | None, bool]:
    """The call that was begun with a caller's idempotency key without waiting for it, on no other terms, through
    whichever hub, and whether its robot's answer, which names it, may still come. From then on the id means the call
    of that robot here, as one that was begun here. Raises ``ProblemError``."""
    command = _command_key(caller, key, _CALLS)
    async with bounded_order():
        begun, may_come = await in_thread(parts.threads.orders, parts.storage.calls.begun_with, command)
    if begun is None:
        return None, may_come
    robot, call_id = begun
    parts.begun[call_id] = robot
    return call_id, may_come


async def ask_for(parts: HubParts, call_id: str, robot: str) -> BridgeReply:
    """The state of a call that was begun at a robot, as its bridge says it. Raises ``ProblemError``."""
    reply = await ask_bridge(parts, BridgeRequest(robot, "GET", f"/calls/{quote(call_id, safe='')}", role="model"))
    body = reply.body | {"robot": robot} if reply.status == 200 and isinstance(reply.body, dict) else reply.body
    return replace(reply, body=body, headers={})


async def first_event(parts: HubParts, robot: str, reply: BridgeReply, next_event: int) -> int:
    """A number that is not behind the first event of a call with an idempotency key that a bridge says it has: it may
    have begun before ``next_event``, which is what is known if the database does not say."""
    if reply.call_id is None:
        return next_event
    try:
        async with within(ORDER_WAITS_S):
            rows = await in_thread(parts.threads.orders, parts.storage.calls.find, reply.call_id)
    except (StorageUnavailableError, WrongSchemaError):
        return next_event  # the call has begun all the same, and what it says from now on can be read
    return min([next_event, *(row.first_seq for row in rows if row.robot == robot)])


def as_response(reply: BridgeReply) -> Response:
    """Turn a bridge's answer into the hub's own."""
    if reply.body is None and reply.status in (204, 205):
        return Response(status_code=reply.status, headers=reply.headers)
    media_type = MEDIA_TYPE if reply.status >= 400 else "application/json"
    return JSONResponse(reply.body, reply.status, headers=reply.headers, media_type=media_type)


async def _looked_up(parts: HubParts, table: Callable[[str], list[T]], call_id: str, *, for_order: bool) -> list[T]:
    """Return what a table has of a call, empty for an id that can be none's. Raises ``ProblemError``."""
    if not is_call_id(call_id):
        return []
    async with bounded_order():
        return await in_thread(parts.threads.orders if for_order else parts.threads.pages, table, call_id)


def _only(call_id: str, robot: str | None, robots: Collection[str]) -> str:
    """The one of the robots that is meant; None means any. Raises ``UnknownCallError`` and ``ProblemError``."""
    found = [name for name in robots if robot in (None, name)]
    if not found:
        raise UnknownCallError(
            call_id,
            f"no call has the id {call_id!r} here: no event of one has come, and none was begun through a hub of this"
            " fleet lately. A call that was begun at its robot comes with that robot's next events; calls that ended"
            " long ago are forgotten",
        )
    if len(found) > 1:
        text = f"several robots have a call {call_id!r}: add ?robot=, one of {', '.join(found)}"
        raise ProblemError(hub_kinds.ROBOT_NEEDED, text)
    return found[0]


async def _meant(parts: HubParts, body: FleetCallBody, *, is_own: bool) -> tuple[str, str]:
    """The robot that a call is for, and its skill, whose own name ``is_own``. Raises ``ProblemError`` and
    ``UnknownSkillError``, and ``StorageUnavailableError``."""
    if body.robot is not None:
        return body.robot, body.skill
    if body.agent is not None:
        found = [(robot, body.skill) for robot in (await parts.robots.all()).values()]
    else:
        found = await parts.robots.meant(body.skill, is_own=is_own)
    # Whether another one is connected changes from one moment to the next: no robot moves because one has left.
    if len(found) == 1:
        return found[0][0].name, found[0][1]
    names = ", ".join(sorted(robot.name for robot, _ in found)[:50]) or "none is known"
    raise ProblemError(
        hub_kinds.ROBOT_NEEDED, f"{body.skill!r} could be meant for several robots: give `robot`, one of {names}"
    )


def _key(body: FleetCallBody, path: str) -> str | None:
    """The key of a command, the same for requests with one idempotency key that wait in the same way. Requests that
    wait otherwise are other commands, which the bridge finds to be about one call. None without an idempotency
    key."""
    if body.idempotency_key is None:
        return None
    return _command_key(body.caller, body.idempotency_key, path, body.lease_wait_s, body.on_duplicate)


def _command_key(
    caller: str, key: str, path: str, lease_wait_s: float = 0.0, on_duplicate: OnDuplicate | None = None
) -> str:
    return hashlib.sha256(json_text([caller, key, path, lease_wait_s, on_duplicate]).encode()).hexdigest()
