"""The skills and calls of a whole fleet, for MCP clients. Each tool has its robot's name before its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bridge.calls.call_pages import WantedState
from dimos_streams.bridge.calls.visibility import is_shown, moves
from dimos_streams.bridge.mcp.calls import began_before
from dimos_streams.client.problems import problem_error
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.names import fleet_name
from dimos_streams.errors import SkillError, UnknownCallError
from dimos_streams.fleet.models_cancel import PATH, ModelsCancel
from dimos_streams.fleet.protocol import DEFAULT_EXPIRY_S
from dimos_streams.hub.asking import BridgeReply, BridgeRequest
from dimos_streams.hub.fleet_view import FleetRobot
from dimos_streams.hub.http.refusing import ask_bridge, bounded_read
from dimos_streams.hub.http.robot_calls import (
    FleetCallBody,
    ask_for,
    begin,
    begun_at,
    begun_with,
    find,
    robot_of_call,
)
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.rows import RobotCallRow
from dimos_streams.hub.threads import in_thread
from dimos_streams.operator.messages.stop import CancelReport, GoingOn
from dimos_streams.serving.problems import ProblemError
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.gateway import CallFacts, CallView

_CALLS = 500
"""Maximum number of calls that clients may list, the newest ones, and of open calls of each robot that they may
end."""
_CANCEL_WAIT_S = 5.0
_BEGIN_WAIT_S = DEFAULT_EXPIRY_S + 5.0
"""Time, in seconds, for which a call is waited for that is to be cancelled and may be on its way to its robot."""
_LOOK_S = 0.2
"""Pause, in seconds, between two looks whether it has begun."""
_OVERTAKEN_S = 5.0
"""Time, in seconds, for which a request that is to be cancelled may be behind that on its way to another hub."""


class FleetCalls:
    """``McpCalls`` of a fleet: what they ask for passes the gates of each robot's bridge as a model's calls."""

    def __init__(self, parts: HubParts) -> None:
        self._parts = parts

    def skills(self) -> list[SkillInfo]:
        """See ``McpCalls``."""
        return [skill for robot in self._parts.robots.known.values() for skill in robot.offered if skill.available]

    async def meet(self, is_known: Callable[[], bool]) -> None:
        """See ``McpCalls``. What robots offered last is in the database."""

    async def begin(self, skill: str, arguments: Mapping[str, Any], caller: str, key: str | None) -> str:
        """See ``McpCalls``."""
        body = FleetCallBody(skill=skill, arguments=dict(arguments), caller=caller, idempotency_key=key)
        with _as_skill_errors():
            robot, reply = await begin(self._parts, body, None, 0.0, model=True)
        _content(reply)  # raises the bridge's refusal
        if reply.call_id is None:
            raise SkillError(f"robot {robot!r} has answered, and not with a call: nobody knows whether one has begun")
        return reply.call_id

    def has_begun(self, caller: str, key: str) -> bool:
        """See ``McpCalls``. Only the robot knows."""
        return False

    async def begun_with(self, caller: str, key: str) -> str | None:
        """See ``McpCalls``. A call on its way to its robot, through another hub, is waited for, and for a moment one
        whose request may have been overtaken on its way to that hub."""
        overtaken_until, deadline = clock.monotonic() + _OVERTAKEN_S, clock.monotonic() + _BEGIN_WAIT_S
        pause_s = _LOOK_S
        with _as_skill_errors():
            while True:
                call_id, may_come = await begun_with(self._parts, caller, key)
                if call_id is not None or clock.monotonic() > (deadline if may_come else overtaken_until):
                    return call_id
                await asyncio.sleep(pause_s)
                pause_s = _LOOK_S if may_come else 2 * pause_s  # most of what nobody has begun never is

    async def view(self, call_id: str) -> CallView:
        """See ``McpCalls``. If no event of the call has come yet, its robot is asked."""
        with _as_skill_errors():
            try:
                return _view((await find(self._parts, call_id, self._parts.begun.get(call_id))).record)
            except UnknownCallError:
                robot = await begun_at(self._parts, call_id, None)
                return _as_call(robot, _content(await ask_for(self._parts, call_id, robot)))

    async def calls(
        self, wanted: Callable[[CallFacts], bool], *, open_only: bool = False, before: str | None = None
    ) -> Iterator[CallView]:
        """See ``McpCalls``. No robot keeps another one's open calls from being found by having many."""
        table, robots = self._parts.storage.calls, [*await self._robots()] if open_only else []

        def read() -> list[RobotCallRow]:
            state: WantedState | None = "open" if open_only else None
            rows = table.newest(_CALLS, robot=None, state=state, before=None)
            if not open_only or len(rows) < _CALLS:
                return rows
            of_each = [table.newest(_CALLS, robot=robot, state=state, before=None) for robot in robots]
            return sorted(chain.from_iterable(of_each), key=lambda row: row.first_seq, reverse=True)

        with _as_skill_errors():
            async with bounded_read():
                rows = await in_thread(self._parts.threads.pages, read)
        return (view for view in (_view(row.record) for row in began_before(before, rows)) if wanted(view))

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``McpCalls``."""
        path = f"/calls/{quote(call_id, safe='')}/cancel"
        with _as_skill_errors():
            robot = self._parts.begun.get(call_id) or await robot_of_call(self._parts, call_id)
            _content(
                await ask_bridge(self._parts, BridgeRequest(robot, "POST", path, {"reason": reason}, role="model"))
            )

    async def wait_closed(self, call_id: str, within_s: float) -> None:
        """See ``McpCalls``."""
        events = self._parts.feed.broadcast
        with contextlib.closing(events.reader(after=events.last_offset, call_id=call_id)) as reader:
            if (await self.view(call_id)).state == "closed":
                return
            timer = asyncio.get_running_loop().call_later(within_s, reader.nudge)
            try:
                while page := await reader.page():
                    if any(entry.type == "close" for entry in page):
                        return
            finally:
                timer.cancel()

    async def cancel_all(self, calls: list[CallView], reason: str, caller: str) -> CancelReport:
        """See ``McpCalls``. Each robot that is connected gets one order, which names its calls among these: there may
        be others that wait there, of which only its bridge knows."""
        connected = [name for name, robot in (await self._robots()).items() if robot.row.connected]
        of_robots: dict[str, list[str]] = {name: [] for name in connected}
        for call in calls:
            of_robots.setdefault(call.robot or "", []).append(call.call_id)
        orders = [
            self._order(robot, ModelsCancel(calls=tuple(ids), caller=caller, reason=reason))
            for robot, ids in of_robots.items()
        ]
        views, _ = await asyncio.gather(
            asyncio.gather(*(self._wait_for_end(call) for call in calls)), asyncio.gather(*orders)
        )
        return CancelReport(
            ended=tuple(view.call_id for view in views if view.state == "closed"),
            going_on=tuple(_going_on(view) for view in views if view.state != "closed"),
        )

    def is_over(self, call: CallView) -> Callable[[], bool]:
        """See ``McpCalls``."""
        return lambda: call.state == "closed"

    async def shown(self) -> Callable[[CallFacts], bool]:
        """See ``McpCalls``."""
        skill_of = await self._skill_of()
        return lambda call: is_shown(call, skill_of(call))

    async def may_move(self) -> Callable[[CallFacts], bool]:
        """See ``McpCalls``."""
        skill_of = await self._skill_of()
        return lambda call: moves(call, skill_of(call))

    async def _skill_of(self) -> Callable[[CallFacts], SkillInfo | None]:
        """Return a function that finds the skill of a call; None if it is gone."""
        robots = await self._robots()
        skills = {(name, skill.name): skill for name, robot in robots.items() for skill in robot.skills.values()}
        return lambda call: skills.get((call.robot or "", call.skill))

    async def _robots(self) -> dict[str, FleetRobot]:
        with _as_skill_errors():
            async with bounded_read():
                return await self._parts.robots.all()

    async def _order(self, robot: str, order: ModelsCancel) -> None:
        """Have a robot end calls. Where it can't, or does not answer soon, they are seen to go on."""
        with contextlib.suppress(ProblemError, TimeoutError):
            async with asyncio.timeout(_CANCEL_WAIT_S):
                body = order.model_dump(mode="json")
                await ask_bridge(self._parts, BridgeRequest(robot, "POST", PATH, body, order.caller, "model"))

    async def _wait_for_end(self, call: CallView) -> CallView:
        """Return a call once it has ended; as it was before, and so as going on, where that can't be had."""
        with contextlib.suppress(SkillError):
            await self.wait_closed(call.call_id, _CANCEL_WAIT_S)
        try:
            return await self.view(call.call_id)
        except SkillError as error:
            return call.model_copy(update={"text": f"it is not known whether it has ended: {error}"})


@contextlib.contextmanager
def _as_skill_errors() -> Iterator[None]:
    """Raise what the hub refuses as ``SkillError``, in the words that it would have over HTTP."""
    try:
        yield
    except ProblemError as error:
        raise SkillError(str(error.detail)) from error


def _content(reply: BridgeReply) -> dict[str, Any]:
    """The body of a reply. Raises ``SkillError`` for a refusal, as the bridge has said it."""
    body: dict[str, Any] = reply.body if isinstance(reply.body, dict) else {}
    if reply.status >= 400:
        raise problem_error({"detail": f"HTTP {reply.status}", **body})
    return body


def _as_call(robot: str, body: Mapping[str, Any]) -> CallView:
    try:
        return CallView.model_validate(body)
    except ValidationError as error:
        raise SkillError(f"robot {robot!r} answers with no call: {first_problem(error, 'its answer')}") from error


def _view(record: str) -> CallView:
    return CallView.model_validate(parse_json(record))


def _going_on(call: CallView) -> GoingOn:
    skill = fleet_name(call.skill, call.robot)
    return GoingOn(call_id=call.call_id, skill=skill, module=call.module, since_utime=clock.utime(), text=call.text)
