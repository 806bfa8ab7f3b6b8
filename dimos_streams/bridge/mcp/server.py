"""Answers MCP clients: the requests of a session, their progress, and what clients are told unasked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dimos_streams import clock
from dimos_streams.bridge.broker import Broker
from dimos_streams.bridge.hub import Hub
from dimos_streams.bridge.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Incoming,
    RpcError,
    error,
    notification,
    result,
)
from dimos_streams.bridge.mcp.sessions import Session, Sessions
from dimos_streams.bridge.mcp.tools import OWN_TOOLS, Tools, call_result, content
from dimos_streams.bridge.problems import log_internal_error
from dimos_streams.errors import SkillError

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Of the protocol, newest first."""
FOLLOW_S = 3600.0
"""A request that asked for progress is answered at the latest after so long; its call goes on."""
_LOOK_S = 0.5
_PING_S = 10.0
_INSTRUCTIONS = """\
These tools are skills of a robot. Some answer and go on: their result says so and names the call. Then \
wait_for_news tells what comes of it, list_calls shows what goes on, and cancel_call ends a call."""


class McpServer:
    """Transport-free: takes messages, gives messages. None among those that it streams stands for a pause."""

    def __init__(self, broker: Broker, hub: Hub) -> None:
        self.sessions = Sessions()
        self._broker = broker
        self._hub = hub
        self._tools = Tools(broker, hub)

    async def initialize(self, request: Incoming) -> tuple[Session, dict[str, Any]]:
        """Open a session; it and the response."""
        client = request.params.get("clientInfo")
        name = client.get("name") if isinstance(client, dict) else None
        session = self.sessions.open(name if isinstance(name, str) else "client", self._hub.last_place)
        session.tools = await self._tools.names()
        asked = request.params.get("protocolVersion")
        value = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "dimos-streams", "version": _version()},
            "instructions": _INSTRUCTIONS,
        }
        return session, result(request.id, value)

    async def answer(self, session: Session, request: Incoming) -> dict[str, Any] | None:
        """The response to a request, without progress. None only if the client has cancelled the request."""
        try:
            value = await self._answer(session, request)
            return result(request.id, value) if request.id not in session.cancelled else None
        except RpcError as problem:
            return error(request.id, problem.code, str(problem))
        except Exception as problem:
            error_id = log_internal_error(problem, f"MCP {request.method}")
            return error(request.id, INTERNAL_ERROR, f"internal error {error_id}")

    def wants_progress(self, request: Incoming) -> bool:
        """Whether a request is to be answered by ``follow``."""
        is_call = request.method == "tools/call" and request.params.get("name") not in OWN_TOOLS
        return is_call and request.progress_token is not None

    async def follow(self, session: Session, request: Incoming) -> AsyncIterator[dict[str, Any] | None]:
        """The progress of a call of a skill, and at its close the response."""
        place = self._hub.last_place
        try:
            name, arguments = _call_parameters(request)
            call_id = await self._tools.begin(session, name, arguments)
        except (RpcError, SkillError) as problem:
            yield _refused(request, problem)
            return
        assert request.id is not None
        session.begin(request.id, call_id)
        with contextlib.closing(self._hub.reader(after=place, call_id=call_id)) as reader:
            deadline = clock.monotonic() + FOLLOW_S
            told = 0
            while clock.monotonic() < deadline and not reader.closed:
                nudge = asyncio.get_running_loop().call_later(_PING_S, reader.nudge)
                page = await reader.page()
                nudge.cancel()
                if not page:
                    yield None
                for entry in page:
                    event = entry.event
                    if event.type in ("update", "progress"):
                        told += 1
                        token = request.progress_token
                        yield notification(
                            "notifications/progress", progressToken=token, progress=told, message=event.text
                        )
                    elif event.type == "close":
                        deadline = 0.0
        view = await self._broker.view(call_id)
        session.answered(request.id, view)
        if request.id not in session.cancelled:
            yield result(request.id, call_result(view))

    async def unasked(self, session: Session) -> AsyncIterator[dict[str, Any] | None]:
        """What a client hears without having asked: that the tools are not those any more that it knows."""
        since = clock.monotonic()
        while not self._hub.closed:
            names = await self._tools.names()
            if names != session.tools:
                session.tools, since = names, clock.monotonic()
                yield notification("notifications/tools/list_changed")
            elif clock.monotonic() - since > _PING_S:
                since = clock.monotonic()
                yield None
            await asyncio.sleep(_LOOK_S)

    async def notice(self, session: Session, message: Incoming) -> None:
        """Take a notification; ``cancelled`` ends the call that the request has begun."""
        if message.method != "notifications/cancelled":
            return
        request, reason = message.params.get("requestId"), message.params.get("reason")
        call_id = session.running.get(request) if isinstance(request, str | int) else None
        if isinstance(request, str | int) and call_id is not None:
            session.cancelled[request] = None
            text = reason if isinstance(reason, str) and reason else "the client has cancelled its request"
            await self._broker.cancel(call_id, text)

    async def _answer(self, session: Session, request: Incoming) -> dict[str, Any]:
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            session.tools = await self._tools.names()
            return {"tools": await self._tools.listed()}
        if request.method == "tools/call":
            return await self._call(session, request)
        raise RpcError(METHOD_NOT_FOUND, f"there is no method {request.method!r} here")

    async def _call(self, session: Session, request: Incoming) -> dict[str, Any]:
        name, arguments = _call_parameters(request)
        try:
            if name in OWN_TOOLS:
                return await self._tools.use_own(session, name, arguments)
            call_id = await self._tools.begin(session, name, arguments)
        except SkillError as problem:
            return content(str(problem), is_error=True)
        assert request.id is not None
        session.begin(request.id, call_id)
        view = await self._tools.answer(call_id)
        session.answered(request.id, view)
        return call_result(view)


def _call_parameters(request: Incoming) -> tuple[str, dict[str, Any]]:
    name, arguments = request.params.get("name"), request.params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "tools/call needs a name (text) and arguments (an object)")
    return name, arguments


def _refused(request: Incoming, problem: RpcError | SkillError) -> dict[str, Any]:
    if isinstance(problem, RpcError):
        return error(request.id, problem.code, str(problem))
    return result(request.id, content(str(problem), is_error=True))


def _version() -> str:
    try:
        return version("dimos-streams")
    except PackageNotFoundError:  # run from a source tree
        return "0"
