"""Skills as tools, and the tools by which a client follows calls that go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dimos_streams.bridge.broker import Broker
from dimos_streams.bridge.hub import Hub
from dimos_streams.bridge.mcp.messages import INVALID_PARAMS, RpcError
from dimos_streams.bridge.mcp.sessions import Session
from dimos_streams.errors import SkillError, suggest
from dimos_streams.tool_stream.event import ToolEvent, json_text
from dimos_streams.tool_stream.gateway import CallView, OfferedSkill

ANSWER_WITHIN_S = 20.0
MAX_WAIT_S = 50.0
"""Clients give up on a request after a minute."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ListCalls(_Arguments):
    """List the calls of skills that are going on, with their newest words."""


class CancelCall(_Arguments):
    """End a call that goes on."""

    call_id: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(max_length=1000)] = "cancelled by the client"


class WaitForNews(_Arguments):
    """Wait for the next news of the calls that you have begun: what they tell after their first answer, and their
    ends. Returns at once if there are some already, and with none when time is up.
    """

    timeout_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] = 20.0


OWN_TOOLS: dict[str, type[_Arguments]] = {
    "list_calls": ListCalls,
    "cancel_call": CancelCall,
    "wait_for_news": WaitForNews,
}


class Tools:
    """What ``tools/list`` and ``tools/call`` are about."""

    def __init__(self, broker: Broker, hub: Hub) -> None:
        self._broker = broker
        self._hub = hub

    async def listed(self) -> list[dict[str, Any]]:
        """All tools: the skills that are meant for everyone, then ours."""
        return [_skill_tool(skill) for skill in await self._skills()] + [
            {
                "name": name,
                "description": " ".join((model.__doc__ or "").split()),
                "inputSchema": _own_schema(model),
                "annotations": {"readOnlyHint": model is not CancelCall},
            }
            for name, model in OWN_TOOLS.items()
        ]

    async def names(self) -> tuple[str, ...]:
        """Of the skills; when they change, the list has changed."""
        return tuple(skill.name for skill in await self._skills())

    async def begin(self, session: Session, name: str, arguments: Mapping[str, Any]) -> str:
        """Begin a call of a skill; its id. Raises ``RpcError`` for an unknown tool, and ``SkillError``."""
        known = [skill.name for skill in await self._skills()]
        if name not in known:
            near = suggest(name, [*known, *OWN_TOOLS])
            raise RpcError(INVALID_PARAMS, f"no tool is called {name!r}{near}")
        return await self._broker.call(name, arguments, caller=session.caller)

    async def answer(self, call_id: str, timeout_s: float = ANSWER_WITHIN_S) -> CallView:
        """A call when it has answered or ended, or as it is when time is up."""
        await self._broker.wait(call_id, "answer", timeout_s)
        return await self._broker.view(call_id)

    async def use_own(self, session: Session, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one of our own tools. Raises ``SkillError``."""
        try:
            given = OWN_TOOLS[name].model_validate(arguments)
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors())
            raise SkillError(f"{name} cannot take these arguments: {told}") from error
        if isinstance(given, CancelCall):
            await self._broker.cancel(given.call_id, given.reason)
            return content(f"call {given.call_id} is asked to end; wait_for_news tells when it has")
        if isinstance(given, WaitForNews):
            return await self._wait_for_news(session, given.timeout_s)
        return await self._list_calls()

    async def _list_calls(self) -> dict[str, Any]:
        shown = {skill.name for skill in await self._skills()}
        views = [view for view in await self._broker.calls(open_only=True) if view.skill in shown]
        lines = [f"{view.call_id}  {view.skill}({json_text(view.arguments)[:200]}): {view.text}" for view in views]
        fields = {"call_id", "skill", "caller", "arguments", "state", "text"}
        calls = [view.model_dump(mode="json", include=fields) for view in views]
        return content("\n".join(lines) or "no calls go on", calls=calls)

    async def _wait_for_news(self, session: Session, timeout_s: float) -> dict[str, Any]:
        news: list[ToolEvent] = []
        with (
            contextlib.closing(self._hub.reader(after=session.place, caller=session.caller)) as reader,
            contextlib.suppress(TimeoutError),
        ):
            async with asyncio.timeout(timeout_s):
                while not news and not reader.closed:
                    for entry in await reader.page():
                        event, session.place = entry.event, entry.place
                        if session.is_news(event):
                            news.append(event)
        lines = [f"{event.skill} (call {event.call_id}) {_told(event)}" for event in news]
        return content("\n".join(lines) or "no news", news=[event.to_dict() for event in news])

    async def _skills(self) -> list[OfferedSkill]:
        offered = await self._broker.skills()
        return [skill for skill in offered if skill.audience == "everyone" and skill.name not in OWN_TOOLS]


def call_result(view: CallView) -> dict[str, Any]:
    """What a client is told of a call that it has begun."""
    state: dict[str, Any] = {"call_id": view.call_id, "state": view.state, "outcome": view.outcome}
    if view.state == "closed":
        failed = view.outcome != "completed"
        text = f"{view.outcome}: {view.text}" if failed else view.text
        return content(text, is_error=failed, **state, result=view.result)
    answer = view.answer if view.answer is not None else "not answered yet"
    goes_on = f"The call goes on as {view.call_id}: wait_for_news tells what comes of it, cancel_call ends it."
    return content(f"{answer}\n\n{goes_on}", **state)


def content(text: str, *, is_error: bool = False, **structured: Any) -> dict[str, Any]:
    """The result of a tool, for models and for programs."""
    made: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {**made, "structuredContent": structured} if structured else made


def _skill_tool(skill: OfferedSkill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "inputSchema": {"type": "object", **skill.parameters},
        "annotations": {
            "readOnlyHint": not skill.motion and skill.parallel_safe,
            "destructiveHint": not skill.reversible,
        },
    }


def _own_schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    for superfluous in ("title", "description"):
        schema.pop(superfluous, None)
    return {"properties": {}, **schema}


def _told(event: ToolEvent) -> str:
    return f"{event.outcome}: {event.text}" if event.type == "close" else f"says: {event.text}"
