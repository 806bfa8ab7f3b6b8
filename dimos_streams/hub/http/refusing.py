"""The refusals of a hub, as problems."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_bytes
from dimos_streams.fleet.protocol import MAX_COMMAND_DEPTH
from dimos_streams.hub.asking import (
    ORDER_WAITS_S,
    BridgeReply,
    BridgeRequest,
    CommandRefusedError,
    HubEndsError,
    RobotSilentError,
    RobotUnreachableError,
)
from dimos_streams.hub.batch_intake import HubBusyError
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.relaying import as_of_both, relay
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.robots import UnknownFleetRobotError
from dimos_streams.hub.storage.rows import StorageUnavailableError, WrongSchemaError
from dimos_streams.hub.threads import within
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError

ASKING = (
    problem_kinds.UNKNOWN_ROBOT,
    problem_kinds.NOT_FOUND,
    problem_kinds.TOO_LARGE,
    problem_kinds.BAD_REQUEST,
    hub_kinds.COMMAND_REFUSED,
    hub_kinds.HUB_UNAVAILABLE,
    hub_kinds.ROBOT_UNREACHABLE,
    hub_kinds.ROBOT_ANSWER,
    hub_kinds.ROBOT_SILENT,
)
"""The problems of a route that asks a robot's bridge, besides those of the bridge itself."""
READ_WAITS_S = 8.0
"""Time, in seconds, for which whoever only looks waits for what has to be read: less than clients wait for a hub."""
_GONE_S = 60.0
"""Time, in seconds, after which a robot that was not heard of is not waited for."""
_AWAY_S = 3.0
"""Time, in seconds, for which whoever only looks waits for a robot that is not connected: it may be on its way to a
hub that was started again."""


@contextlib.contextmanager
def translate_refusals() -> Iterator[None]:
    """Turn what the storage and the fleet refuse into problems."""
    try:
        yield
    except (StorageUnavailableError, WrongSchemaError, HubBusyError) as error:
        raise ProblemError(hub_kinds.HUB_UNAVAILABLE, str(error)) from error
    except UnknownFleetRobotError as error:
        raise ProblemError(problem_kinds.UNKNOWN_ROBOT, str(error)) from error


@contextlib.asynccontextmanager
async def bounded_read() -> AsyncGenerator[None]:
    """Wait a bounded time for what is read for somebody who only looks; refuse as ``translate_refusals`` does."""
    with translate_refusals():
        async with within(READ_WAITS_S):
            yield


@contextlib.asynccontextmanager
async def bounded_order() -> AsyncGenerator[None]:
    """Wait a bounded time for what is read for somebody's order; refuse as ``translate_refusals`` does."""
    with translate_refusals():
        async with within(ORDER_WAITS_S):
            yield


async def ask_bridge(parts: HubParts, request: BridgeRequest) -> BridgeReply:
    """Ask a robot's bridge, and return its reply. Raises ``ProblemError``."""
    if request.body is not None and is_deeper(json_bytes(request.body), MAX_COMMAND_DEPTH):
        text = f"the body is nested more than {MAX_COMMAND_DEPTH} deep: no bridge takes that"
        raise ProblemError(problem_kinds.BAD_REQUEST, text)
    with translate_refusals():
        async with within(ORDER_WAITS_S):
            robot = await parts.robots.find(request.robot)
            if not robot.row.connected:
                robot = (await parts.robots.newest()).get(request.robot, robot)
            view = robot.view(await parts.now_utime(for_order=True))
        if not view.connected and view.heard_s is not None and view.heard_s > _GONE_S:
            text = (
                f"robot {robot.name!r} is not connected, it was heard of {view.heard_s:.0f} s ago: the command was"
                " not carried out, and will not be"
            )
            raise ProblemError(hub_kinds.ROBOT_UNREACHABLE, text)
        if not view.connected and request.method == "GET":
            request = replace(request, timeout_s=_AWAY_S)
        try:
            return as_of_both(request, relay(robot.name, await parts.asker.ask(request)))
        except CommandRefusedError as error:
            raise ProblemError(hub_kinds.COMMAND_REFUSED, str(error)) from error
        except RobotUnreachableError as error:
            raise ProblemError(hub_kinds.ROBOT_UNREACHABLE, str(error)) from error
        except HubEndsError as error:
            raise ProblemError(hub_kinds.HUB_UNAVAILABLE, str(error)) from error
        except RobotSilentError as error:
            raise ProblemError(hub_kinds.ROBOT_SILENT, str(error)) from error
