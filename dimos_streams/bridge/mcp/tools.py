"""Skills as tools, and the tools by which a client reads the events of calls, looks them up, and ends them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from dimos_streams import clock
from dimos_streams.bridge.mcp.calls import McpCalls
from dimos_streams.bridge.mcp.messages import INVALID_PARAMS, INVALID_REQUEST, Id, RpcError
from dimos_streams.bridge.mcp.reading import read_page
from dimos_streams.bridge.mcp.results import ENDS, READS, call_list, call_view, content, skill_tool, updates
from dimos_streams.bridge.mcp.sessions import Session
from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import MAX_NAME, fleet_name, skill_meant, tool_name
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.common.schemas.plain import tool_parameters
from dimos_streams.errors import KeyUsedError, SkillError, UnknownCallError, suggest
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.operator.known_names import CANCEL_CALL
from dimos_streams.serving.events.parameters import OFFSETS_END
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.calling.withdrawal import named_reason
from dimos_streams.tool_stream.gateway import CallFacts, CallView, theirs_to_end

MAX_WAIT_S = 50.0
"""Maximum wait, in seconds: clients give up on a request after a minute."""
AGAIN_S = 60.0
"""Time, in seconds, for which a request that has the id of one before it may be the same one, sent again. Later it is
another one, of a client that counts anew."""
_CANCEL_WAIT_S = 3.0
_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)

_CallId = Annotated[str, Field(min_length=1, max_length=200)]


class SkillUpdates(JsonModel):
    """Read what calls say after their first answer, and their ends, behind a cursor. Results give the cursor for the
    next time; to read with the same one again gives the same again. Without `call_id` it is about all calls that you
    have begun, also before a reconnection.
    """

    call_id: Annotated[_CallId | None, Field(description="Of this call only, whoever has begun it.")] = None
    after: Annotated[
        int | None,
        Field(ge=0, lt=OFFSETS_END, description="The cursor; without it, from the oldest that is kept on."),
    ] = None
    wait_s: Annotated[
        float, Field(ge=0, le=MAX_WAIT_S, description="How long to wait for the next one if there is none yet.")
    ] = 4.0


class GetCall(JsonModel):
    """Show how a call stands: its state, what it said last and, if it is over, its outcome and result."""

    call_id: _CallId


class ListCalls(JsonModel):
    """List calls of skills, open and closed, newest first, with what they said last."""

    state: Literal["open", "closed", "all"] = "all"
    mine: Annotated[bool, Field(description="Only those that you have begun.")] = False
    skill: Annotated[str | None, Field(max_length=200, description="Only those of this tool or skill.")] = None
    before: Annotated[_CallId | None, Field(description="Only those that are older than this call.")] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 20


ALL_CALLS = "all"


class CancelCall(JsonModel):
    """End a call that you have begun, or all of yours and every motion that goes on, whoever has begun it."""

    call_id: Annotated[_CallId, Field(description='Its id, or "all" to stop motion, too.')]
    reason: Annotated[str, Field(max_length=1000)] = "cancelled by the client"


OWN_TOOLS: dict[str, type[JsonModel]] = {
    "skill_updates": SkillUpdates,
    "get_call": GetCall,
    "list_calls": ListCalls,
    CANCEL_CALL: CancelCall,
}


class McpTools:
    """The tools behind ``tools/list`` and ``tools/call``."""

    def __init__(self, calls: McpCalls, broadcast: Broadcast) -> None:
        self._calls = calls
        self._broadcast = broadcast

    def skills(self) -> tuple[SkillInfo, ...]:
        """The skills that are meant for everyone; when any of them changes, the list of tools has changed."""
        return tuple(
            info for info in self._calls.skills() if info.audience == "everyone" and info.name not in OWN_TOOLS
        )

    async def begin(self, session: Session, id: Id, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Begin the call of a skill that a request asks for; return the call's id, and whether it is the call which
        the same request has just begun at the server before this one. Raises ``RpcError`` for an unknown tool and
        for a request's id that was used before, and ``SkillError``."""
        await self._calls.meet(lambda: self._called(name) is not None)
        skill = self._called(name)
        if skill is None:
            near = suggest(name, [*(info.name for info in self.skills()), *OWN_TOOLS])
            raise RpcError(INVALID_PARAMS, f"no tool is called {shortened(repr(name), MAX_NAME)}{near}")
        key, asked_utime = session.key_of(id), clock.utime()
        comes_again = key is not None and self._calls.has_begun(session.caller, key)
        try:
            call_id = await self._calls.begin(skill, arguments, session.caller, key)
        except KeyUsedError as problem:
            raise _used_before(id, problem.call_id) from problem
        if comes_again and (await self._calls.view(call_id)).requested_utime < asked_utime - AGAIN_S * 1e6:
            raise _used_before(id, call_id)
        return call_id, comes_again

    def _called(self, tool: str) -> str | None:
        """The skill that is called by a tool's name, or by its own; None if none is known."""
        return skill_meant(tool, {info.name for info in self.skills()})

    async def use_own(self, session: Session, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one of our own tools. Raises ``SkillError``."""
        try:
            given = OWN_TOOLS[name].model_validate(arguments)
        except ValidationError as error:
            text = in_a_line(problems_with_values(error, "arguments"))
            raise SkillError(f"{name} cannot take these arguments: {text}") from error
        if isinstance(given, SkillUpdates):
            return await self._skill_updates(session, given)
        if isinstance(given, ListCalls):
            return await self._list_calls(session, given)
        if isinstance(given, CancelCall):
            return await self._cancel(session, given)
        assert isinstance(given, GetCall)
        return call_view(await self.find_shown(given.call_id))

    async def _skill_updates(self, session: Session, given: SkillUpdates) -> dict[str, Any]:
        if given.call_id is None:
            page = await read_page(self._broadcast, after=given.after, wait_s=given.wait_s, caller=session.caller)
            return updates(page, None)
        call = await self.find_shown(given.call_id)
        page = await read_page(
            self._broadcast,
            after=given.after,
            wait_s=given.wait_s,
            call_id=call.call_id,
            over=self._calls.is_over(call),
        )
        return updates(page, await self._calls.view(call.call_id))

    async def _list_calls(self, session: Session, given: ListCalls) -> dict[str, Any]:
        is_shown = await self._calls.shown()

        def is_wanted(call: CallFacts) -> bool:
            return (
                is_shown(call)
                and (given.state == "all" or (call.state == "closed") is (given.state == "closed"))
                and (not given.mine or call.caller == session.caller)
                and given.skill in (None, call.skill, *_tool_names(call))
            )

        before = None if given.before is None else (await self.find_shown(given.before)).call_id
        page = list(islice(await self._calls.calls(is_wanted, before=before), given.limit + 1))
        return call_list(page[: given.limit], more=len(page) > given.limit)

    async def _cancel(self, session: Session, given: CancelCall) -> dict[str, Any]:
        """Raises ``SkillError`` for a call that somebody else has begun."""
        if given.call_id == ALL_CALLS:
            return await self._cancel_all(session, given.reason)
        call = await self.find_shown(given.call_id)
        if call.caller != session.caller:
            raise SkillError(theirs_to_end(call, f'cancel_call(call_id="{ALL_CALLS}")'))
        await self._calls.cancel(call.call_id, given.reason)
        await self._calls.wait_closed(call.call_id, _CANCEL_WAIT_S)
        view = await self._calls.view(call.call_id)
        if view.state == "closed":
            return content(f"call {view.call_id} is over: {view.outcome}: {view.text}", outcome=view.outcome)
        return content(f"call {view.call_id} is asked to end; get_call says whether it has", outcome=None)

    async def _cancel_all(self, session: Session, reason: str) -> dict[str, Any]:
        """End a client's own calls, and whoever's may move a robot: anybody may stop motion. Clients speak for
        models, and hold no robot against its operators."""
        may_move = await self._calls.may_move()
        calls = await self._calls.calls(lambda call: call.caller == session.caller or may_move(call), open_only=True)
        oldest_first = [*calls][::-1]
        report = await self._calls.cancel_all(oldest_first, named_reason(reason, session.caller), session.caller)
        ends_some = report.ended or report.going_on
        text = str(report) if ends_some else "no call of yours was open, and none of others' that may move a robot"
        return content(text, **report.model_dump(mode="json"))

    async def find_shown(self, call_id: str) -> CallView:
        """A call that clients may know of. Raises ``UnknownCallError``: operators' calls are none of them."""
        call = await self._calls.view(call_id)
        if not (await self._calls.shown())(call):
            raise UnknownCallError(call_id)
        return call


def _tool_names(call: CallFacts) -> tuple[str, str]:
    skill = fleet_name(call.skill, call.robot)
    return skill, tool_name(skill)


def _used_before(id: Id, call_id: str) -> RpcError:
    text = f"request {id!r} was made before in this session, and has begun call {call_id!r}, which get_call shows"
    return RpcError(INVALID_REQUEST, f"{text}; nothing is begun for this one: each needs an id of its own")


def listed(skills: Iterable[SkillInfo]) -> list[dict[str, Any]]:
    """The list of all tools: the skills, then ours."""
    return list(_skill_tools(skills)) + [
        {
            "name": name,
            "description": " ".join((model.__doc__ or "").split()),
            "inputSchema": tool_parameters(model),
            "annotations": ENDS if model is CancelCall else READS,
        }
        for name, model in OWN_TOOLS.items()
    ]


def _skill_tools(skills: Iterable[SkillInfo]) -> Iterator[dict[str, Any]]:
    for skill in skills:
        try:
            yield skill_tool(skill)
        except ValueError as error:
            _log.warning("skill %r is no tool for MCP clients: its schema: %s", skill.name, error)
