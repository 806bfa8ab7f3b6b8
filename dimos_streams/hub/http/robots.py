"""``/robots``: the robots that there are, operators' orders to them, and the bridge of each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from pydantic import Field

from dimos_streams import clock
from dimos_streams.bridge.http.call_routes import DEFAULT_WAIT_S, MAX_WAIT_S
from dimos_streams.client.call_body import MAX_LEASE_WAIT_S
from dimos_streams.common.http.bearer import without_token
from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.fleet.commands import Method
from dimos_streams.fleet.protocol import MAX_TEXT
from dimos_streams.hub.asking import BridgeReply, BridgeRequest
from dimos_streams.hub.fleet_view import ListedRobot
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import ASKING, ask_bridge, bounded_order, bounded_read
from dimos_streams.hub.http.relaying import headers_below
from dimos_streams.hub.http.robot_calls import as_response
from dimos_streams.hub.http.robot_names import OfRobot, RobotPath
from dimos_streams.hub.parts import HubParts
from dimos_streams.operator.messages.stop import SeenStops
from dimos_streams.serving import links, problem_kinds
from dimos_streams.serving.openapi import Described, answers, refusals
from dimos_streams.serving.problems import ProblemError
from dimos_streams.tool_stream.gateway import OfferedSkill

_OWN_KINDS = (problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST, hub_kinds.HUB_UNAVAILABLE)
_LONGEST = 2000
"""Maximum length of what a robot says of an order, in characters."""
_IN_PATHS = "/:@!$&'()*+,;="
"""Characters that stand for themselves in a path."""


class FleetOrder(JsonModel):
    """Body of ``POST /robots/stop`` and ``/calls/cancel``; it may be left out."""

    robot: Annotated[str, Field(max_length=MAX_NAME)] = ""
    """A robot of the fleet, or one of several in its run: ``NAME/NAMESPACE``. Empty for every robot."""
    reason: Annotated[str, Field(max_length=MAX_TEXT)] = ""


class FleetRelease(FleetOrder):
    """Body of ``POST /robots/release``; it may be left out."""

    seen: SeenStops | None = None
    """The stops that whoever asks has seen, of all robots: a robot whose release would undo another one refuses."""


def mount_robots(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""

    @app.get("/robots", responses=refusals(hub_kinds.HUB_UNAVAILABLE))
    async def robots() -> list[ListedRobot]:
        async with bounded_read():
            now = await parts.now_utime()
            return [robot.view(now) for robot in (await parts.robots.all()).values()]

    @app.get("/skills", responses=refusals(*_OWN_KINDS))
    async def skills(robot: OfRobot = None) -> list[OfferedSkill]:
        async with bounded_read():
            chosen = [await parts.robots.find(robot)] if robot else list((await parts.robots.all()).values())
        return [skill for each in chosen for skill in each.offered]

    _mount_orders(app, parts)
    _mount_bridges(app, parts)


def _mount_orders(app: FastAPI, parts: HubParts) -> None:
    described = refusals(*_OWN_KINDS, takes_body=True)

    @app.post("/robots/stop", responses=described)
    async def stop_robots(body: FleetOrder | None = None) -> dict[str, Any]:
        return await _give_order(parts, "/robots/stop", body or FleetOrder())

    @app.post("/robots/release", responses=refusals(*_OWN_KINDS, problem_kinds.CONFLICT, takes_body=True))
    async def release_robots(body: FleetRelease | None = None) -> dict[str, Any]:
        return await _give_order(parts, "/robots/release", body or FleetRelease())

    @app.post("/calls/cancel", responses=described)
    async def cancel_calls(body: FleetOrder | None = None) -> dict[str, Any]:
        return await _give_order(parts, "/calls/cancel", body or FleetOrder())


async def _give_order(parts: HubParts, path: str, order: FleetOrder) -> dict[str, Any]:
    """Give an order to all robots that it is about; return what came of it, in the text a line for each robot. Raises
    ``ProblemError``."""
    asked_at = clock.steady()
    name, _, inner = order.robot.partition("/")
    async with bounded_order():
        # One that was added just now is to stop, too.
        names = [(await parts.robots.find(name)).name] if name else list(await parts.robots.newest())
    fields = {**order.model_dump(mode="json"), "robot": inner}
    requests = [BridgeRequest(one, "POST", path, fields, asked_at=asked_at) for one in names]
    each = await asyncio.gather(*(_order_one(parts, request) for request in requests))
    replies = dict(zip(names, each, strict=True))
    text = "\n".join(f"{name}: {reply['text']}" for name, reply in replies.items()) or "there is no robot"
    confirmed = bool(replies) and all(map(_is_confirmed, replies.values()))
    return {"robots": replies, "confirmed": confirmed, "text": text}


async def _order_one(parts: HubParts, request: BridgeRequest) -> dict[str, Any]:
    """Give an order to one of several robots; return the bridge's report, or why there is none."""
    try:
        reply = await ask_bridge(parts, request)
    except ProblemError as error:
        return {"confirmed": False, "text": f"NOT REACHED: {error.detail}"}
    return order_report(reply)


def order_report(reply: BridgeReply) -> dict[str, Any]:
    """Return the report of a robot on an order, with a text of one line."""
    if reply.status != 200 or not isinstance(reply.body, dict):
        return {"confirmed": False, "text": f"REFUSED: {_in_a_line(_detail(reply.body))}"}
    text = reply.body.get("text")
    if not isinstance(text, str):
        return {**reply.body, "confirmed": False, "text": "NOT CONFIRMED: its answer does not say so"}
    return {"confirmed": False, **reply.body, "text": _in_a_line(text)}


def _in_a_line(said: str) -> str:
    """A text of a robot as one line, which is shortened if it is long: it must not look like what another one says,
    nor keep that out of sight."""
    return shortened(" ".join(said.split()), _LONGEST)


def _mount_bridges(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to each robot's bridge, as far as it takes requests from a hub."""

    @app.get(
        "/robots/{robot}/{path:path}",
        response_class=Response,
        response_model=None,
        responses=_answered(200, Link=links.OLDER) | refusals(*ASKING, problem_kinds.UNKNOWN_CALL),
    )
    async def get_from_robot(robot: RobotPath, path: str, request: Request) -> Response:
        return await _pass_on(parts, robot, "GET", path, request, None)  # HEAD is answered by it, too

    @app.post(
        "/robots/{robot}/{path:path}",
        response_class=Response,
        response_model=None,
        responses=_answered(200)
        | _answered(201, Location="The call, at its bridge.")
        | _answered(202)
        | refusals(*ASKING, *problem_kinds.BEGINNING, problem_kinds.BAD_SETTINGS, takes_body=True),
    )
    async def post_to_robot(
        robot: RobotPath, path: str, request: Request, body: dict[str, Any] | None = None
    ) -> Response:
        return await _pass_on(parts, robot, "POST", path, request, body)


def _answered(status: int, **headers: str) -> Described:
    return answers(status, "What the robot's bridge answers.", {}, media_type="application/json", **headers)


async def _pass_on(
    parts: HubParts, robot: str, method: Method, path: str, request: Request, body: dict[str, Any] | None
) -> Response:
    """The answer of a robot's bridge to a request. Raises ``ProblemError``."""
    query = without_token(request.url.query)
    # The path has been decoded, and what was escaped in it must not become a query there.
    target = f"/{quote(path, safe=_IN_PATHS)}{query and f'?{query}'}"
    if len(target) > 2000 or not target.isascii() or not target.isprintable() or " " in target:
        raise ProblemError(problem_kinds.BAD_REQUEST, f"{target[:100]!r} is no path of a bridge")
    begins = f"/{path}" == "/calls" and method == "POST"
    timeout_s = _number(request.query_params.get("timeout_s", DEFAULT_WAIT_S), MAX_WAIT_S)
    wanted = BridgeRequest(
        robot,
        method,
        target,
        body,
        lease_wait_s=_number((body or {}).get("lease_wait_s"), MAX_LEASE_WAIT_S) if begins else 0.0,
        timeout_s=timeout_s if begins and "wait" in request.query_params else None,
    )
    reply = await ask_bridge(parts, wanted)
    return as_response(replace(reply, headers=headers_below(robot, reply.headers)))


def _number(given: object, most: float) -> float:
    """A number of a request, from 0 to ``most``, that its bridge has yet to check; 0 for what is no number."""
    try:
        number = float(given) if isinstance(given, str | int | float) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return min(max(number, 0.0), most) if number == number else 0.0


def _is_confirmed(reply: Mapping[str, Any]) -> bool:
    return reply["confirmed"] is True


def _detail(body: object) -> str:
    detail = body.get("detail") if isinstance(body, dict) else None
    return detail if isinstance(detail, str) else "it does not say why"
