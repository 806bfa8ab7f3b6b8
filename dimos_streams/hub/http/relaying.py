"""The parts of a robot's answer that a hub passes on: a robot speaks for itself, and not for the hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args
from urllib.parse import unquote

from dimos_streams.client.orders import Order
from dimos_streams.fleet.commands import two_robots
from dimos_streams.fleet.paths import bare_path, is_open
from dimos_streams.hub.asking import BridgeReply, BridgeRequest
from dimos_streams.hub.http import hub_kinds
from dimos_streams.serving.problems import ProblemError
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

_QUERY = r"\?[!#-;=?-\[\]-~]*"
_HEADERS = {
    "Location": re.compile("(/calls/[!-~]+)"),
    "Link": re.compile(rf'<(/(?:calls|events|tool_streams)(?:{_QUERY})?)>; rel="[a-z]+"'),
}
"""The headers that are passed on, and the form that their values must have: paths as a bridge gives them."""
_ORDERS = get_args(Order)
_NO_CONTENT = (204, 205)


def relay(robot: str, reply: BridgeReply) -> BridgeReply:
    """The reply, if it may be passed on. Raises ``ProblemError`` that names the robot."""
    status = reply.status
    # 401 would be about the hub's own token, and nobody is to follow a robot elsewhere.
    if not (200 <= status < 300 or 400 <= status < 600) or status == 401:
        raise _refusal(robot, f"status {status}; valid: a final one that is no redirection and not 401")
    if status in _NO_CONTENT and reply.body is not None:
        raise _refusal(robot, f"a body with status {status}")
    for name, value in reply.headers.items():
        if not _is_a_bridges(name, value):
            why = "valid: Location with a call's path, and Link with that of calls or events"
            raise _refusal(robot, f"{name[:50]!r}: {value[:100]!r}; {why}")
    return reply if status < 400 else replace(reply, headers={})  # a refusal leads nowhere


def as_of_both(request: BridgeRequest, reply: BridgeReply) -> BridgeReply:
    """The reply to an order, which confirms nothing if it is that of one of two robots with the same name."""
    is_order = request.method == "POST" and bare_path(request.path) in _ORDERS
    if not reply.doubled or not is_order or not isinstance(reply.body, dict) or reply.status != 200:
        return reply
    text = f"NOT CONFIRMED: {two_robots(request.robot)}; one of them: {reply.body.get('text', 'done')}"
    return replace(reply, body={**reply.body, "confirmed": False, "text": text})


def headers_below(robot: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Those of the headers that were passed on whose paths the hub has below ``/robots/NAME/``, with the paths that
    they have there: what is at the robot's own path is at the hub something else, or nothing."""
    return {
        name: f"{value[: found.start(1)]}/robots/{robot}{value[found.start(1) :]}"
        for name, value in headers.items()
        if (found := _HEADERS[name].fullmatch(value)) is not None and is_open("operator", "GET", found[1])
    }


def _is_a_bridges(name: str, value: str) -> bool:
    """Return whether a header leads where a bridge leads: clients follow a path with ``..`` in it to anywhere else at
    the hub, to another robot's bridge too."""
    form = _HEADERS.get(name)
    if form is None or not (found := form.fullmatch(value)):
        return False
    return name != "Location" or is_call_id(unquote(found[1].removeprefix("/calls/")))


def _refusal(robot: str, what: str) -> ProblemError:
    return ProblemError(
        hub_kinds.ROBOT_ANSWER, f"robot {robot!r} has answered with what a hub does not pass on: {what}"
    )
