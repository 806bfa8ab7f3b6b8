"""Answers MCP clients: the requests of a session, their progress, and what clients get unasked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bridge.mcp.awaited import Awaited
from dimos_streams.bridge.mcp.calls import McpCalls
from dimos_streams.bridge.mcp.greeting import VERSIONS, greeting_for
from dimos_streams.bridge.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Greeting,
    Id,
    Incoming,
    RpcError,
    error,
    is_id,
    notification,
    result,
)
from dimos_streams.bridge.mcp.results import call_result, content, no_answer
from dimos_streams.bridge.mcp.sessions import MAX_ALL_STREAMS, MAX_ANSWERS, MAX_STREAMS, Request, Session, Sessions
from dimos_streams.bridge.mcp.tools import OWN_TOOLS, McpTools, listed
from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.errors import SkillError, UnknownCallError
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.operator.known_names import CANCEL_CALL
from dimos_streams.serving.problems import log_internal_error
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

Messages = AsyncGenerator[dict[str, Any] | Awaited | None, None]

ANSWER_WITHIN_S = 20.0
"""Time, in seconds, after which a call that has not answered is reported as still running."""
_LOOK_S = 0.5
"""Pause, in seconds, between two looks of a ``GET`` stream whether the tools have changed. Heartbeats
cause no look: there may be many of both."""
_PING_S = 10.0


class McpServer:
    """The server without its transport: takes and gives messages. None among those that it streams stands for a
    pause, ``Awaited`` for the place where a client whose stream is cut goes on."""

    def __init__(self, calls: McpCalls, broadcast: Broadcast) -> None:
        self.sessions = Sessions()
        self._streams = 0
        """Number of open ``GET`` streams of all sessions."""
        self._calls = calls
        self._broadcast = broadcast
        self._tools = McpTools(calls, broadcast)

    async def initialize(self, request: Incoming) -> tuple[Session, dict[str, Any]]:
        """Open a session; return it and the response. Raises ``SessionsBusyError`` and, for bad parameters,
        ``RpcError``."""
        try:
            greeting = Greeting.model_validate(request.params)
        except ValidationError as problem:
            text = f"initialize can't take these parameters: {in_a_line(problems_with_values(problem, 'params'))}"
            raise RpcError(INVALID_PARAMS, text) from problem
        session = self.sessions.open(greeting.client_info.name)
        session.skills = self._tools.skills()
        return session, result(request.id, greeting_for(greeting.protocol_version))

    async def answer_alone(self, request: Incoming) -> dict[str, Any]:
        """The response to a request without a session. Raises ``SessionsBusyError``."""
        if request.method == "initialize":
            return result(request.id, greeting_for(VERSIONS[0]))
        with self.sessions.passing() as session:
            response = await self.answer(session, request)
        assert response is not None, "nobody can cancel a request that belongs to no session"
        return response

    async def answer(self, session: Session, request: Incoming) -> dict[str, Any] | None:
        """The response to a request, without progress. It is None only if the client has cancelled the request."""
        if _calls_a_skill(request):
            response = None
            async for message in self.follow(session, request):
                response = message if isinstance(message, dict) and "id" in message else response
            return response
        assert request.id is not None
        with session.own(request.id) as asked:
            own = await self._own_response(session, request, asked)
            return None if asked.cancelled else own

    async def _own_response(self, session: Session, request: Incoming, asked: Request) -> dict[str, Any] | None:
        try:
            async with asyncio.timeout(None) as scope:
                # What has begun to end calls ends them all, whoever waits for it.
                asked.reading = None if request.params.get("name") == CANCEL_CALL else scope
                return result(request.id, await self._answer(session, request))
        except SkillError as problem:
            return result(request.id, content(str(problem), is_error=True))
        except RpcError as problem:
            return error(request.id, problem.code, str(problem))
        except Exception as problem:
            return None if asked.cancelled else _internal_error(request, problem)

    def wants_stream(self, request: Incoming, *, resumes: bool) -> bool:
        """Return whether a request is to be answered by ``follow``."""
        return _calls_a_skill(request) and (resumes or request.progress_token is not None)

    async def follow(self, session: Session, request: Incoming, *, resumes: bool = False) -> Messages:
        """Call a skill: yield its progress, if the client wants to hear of it, and the response at the call's answer.
        There is no response if the client has cancelled the request. One that ``resumes`` gets its answer by
        ``answer_again`` if the connection breaks."""
        begun = Request()
        try:
            name, arguments = _call_parameters(request)
            assert request.id is not None
            with session.request(request.id) as begun:
                if begun.cancelled:
                    return
                before = self._broadcast.last_offset
                begun.call_id, comes_again = await self._tools.begin(session, request.id, name, arguments)
                begun.cursor = 0 if comes_again else before  # its answer may be there
                if begun.cancelled:
                    await self._calls.cancel(begun.call_id, begun.cancelled)
                if resumes:
                    yield Awaited(begun.call_id, begun.cursor, request.id)
                async with contextlib.aclosing(self._answered(begun, request)) as sent:
                    async for message in sent:
                        yield message
        except SkillError as problem:
            refused = result(request.id, no_answer(begun.call_id, begun.cursor, problem))
        except RpcError as problem:
            refused = error(request.id, problem.code, str(problem))
        except Exception as problem:
            refused = _internal_error(request, problem)
        else:
            return
        if not begun.cancelled:
            yield refused

    async def answer_again(self, session: Session, awaited: Awaited) -> Messages:
        """Yield the response to a request whose stream was cut, at its call's answer, and no progress. There is none
        if the client has cancelled the request."""
        request = Incoming(jsonrpc="2.0", id=awaited.request, method="tools/call")
        if self.why_not_listen(session, awaited):
            return  # others that came in the same moment were first; the client comes again
        with session.answer(), self._stream():
            try:
                call = await self._tools.find_shown(awaited.call_id)
                if call.caller != session.caller:  # whoever waits for a call may cancel it
                    text = f"call {call.call_id!r} was begun by {call.caller!r}, who has its answer"
                    raise UnknownCallError(call.call_id, text)
                begun = session.awaits(awaited.request, call.call_id)
                begun.cursor = awaited.cursor
                async with contextlib.aclosing(self._answered(begun, request)) as sent:
                    async for message in sent:
                        yield message
            except SkillError as problem:
                yield result(request.id, no_answer(awaited.call_id, awaited.cursor, problem))
            except Exception as problem:
                yield _internal_error(request, problem)

    async def _answered(self, begun: Request, request: Incoming) -> Messages:
        async with contextlib.aclosing(self._until_answered(begun, request.progress_token)) as sent:
            async for message in sent:
                yield message
        if begun.cancelled:
            return
        answer = call_result(await self._calls.view(begun.call_id), begun.cursor)
        if not begun.cancelled:
            begun.answered = True
            yield result(request.id, answer)

    async def _until_answered(self, begun: Request, token: str | int | None) -> Messages:
        """Yield progress, and pauses, up to the first update or the close, or until time is up."""
        deadline = clock.monotonic() + ANSWER_WITHIN_S
        sent = 0
        with contextlib.closing(self._broadcast.reader(after=begun.cursor, call_id=begun.call_id)) as reader:
            while not reader.closed and (left := deadline - clock.monotonic()) > 0:
                page = await reader.page_within(min(left, _PING_S))
                if not page:
                    yield None
                for entry in page:
                    begun.cursor, event = entry.offset, entry.event
                    if event.type in ("update", "close"):
                        return
                    if event.type == "progress" and token is not None and not begun.cancelled:
                        sent += 1
                        yield notification(
                            "notifications/progress", progressToken=token, progress=sent, message=event.text
                        )

    def why_not_listen(self, session: Session, awaited: Awaited | None = None) -> str:
        """The reason why a session may open no further ``GET`` stream, or none for an answer; empty if it may."""
        if session.streams >= MAX_STREAMS and awaited is None:
            return f"this session has {MAX_STREAMS} streams open already, which is as many as it may; end one"
        if session.answers >= MAX_ANSWERS and awaited is not None:
            return f"this session waits for {MAX_ANSWERS} answers already, as many as it may; try again later"
        if self._streams >= MAX_ALL_STREAMS:
            return f"{MAX_ALL_STREAMS} streams are open already, which is as many as there may be; try again later"
        return ""

    async def listen(self, session: Session) -> Messages:
        """Yield the messages that a client gets without having asked: that the tools have changed."""
        since = clock.monotonic()
        if self.why_not_listen(session):
            return  # others that came in the same moment were first
        with session.stream(), self._stream():
            while session in self.sessions and not self._broadcast.closed:
                skills = self._tools.skills()
                if skills != session.skills:
                    session.skills, since = skills, clock.monotonic()
                    yield notification("notifications/tools/list_changed")
                elif clock.monotonic() - since > _PING_S:
                    since = clock.monotonic()
                    yield None
                await asyncio.sleep(_LOOK_S)

    @contextlib.contextmanager
    def _stream(self) -> Iterator[None]:
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def notice(self, session: Session, message: Incoming) -> None:
        """Take a notification; ``cancelled`` ends the call that the request has begun, or keeps it from beginning, or
        ends the request's reading."""
        if message.method != "notifications/cancelled":
            return
        id, reason = message.params.get("requestId"), message.params.get("reason")
        if not is_id(id):
            return
        why = reason[:MAX_REASON] if isinstance(reason, str) and reason else "the client has cancelled its request"
        request = session.find(id)
        if request is None:
            session.cancel_early(id, why)
            request = await self._begun_elsewhere(session, id)
        if request is not None and not request.cancelled:
            request.give_up(why)
            await self._end(request, why)

    async def _begun_elsewhere(self, session: Session, id: Id) -> Request | None:
        """A request that this server does not know, and whose call another one has begun: the one before it, or
        another hub. None if none is known."""
        key = session.key_of(id)
        if key is None or session.knows(id):
            return None
        call_id = await self._calls.begun_with(session.caller, key)
        return None if call_id is None else session.awaits(id, call_id)

    async def _end(self, request: Request, why: str) -> None:
        if request.reading is not None:
            request.reading.reschedule(asyncio.get_running_loop().time())
        if request.call_id:
            with contextlib.suppress(UnknownCallError):  # it has ended long ago
                await self._calls.cancel(request.call_id, why)

    async def _answer(self, session: Session, request: Incoming) -> dict[str, Any]:
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            if cursor := request.params.get("cursor"):
                raise RpcError(INVALID_PARAMS, f"no page begins at {cursor!r:.50}: tools/list gives all tools in one")
            session.skills = self._tools.skills()
            return {"tools": listed(session.skills)}
        if request.method == "tools/call":
            name, arguments = _call_parameters(request)
            return await self._tools.use_own(session, name, arguments)
        raise RpcError(METHOD_NOT_FOUND, f"there is no method {request.method!r} here")


def _calls_a_skill(request: Incoming) -> bool:
    return request.method == "tools/call" and request.params.get("name") not in OWN_TOOLS


def _call_parameters(request: Incoming) -> tuple[str, dict[str, Any]]:
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if arguments is None:  # some clients say null where they mean none
        arguments = {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "tools/call needs a name (text) and arguments (an object)")
    return name, arguments


def _internal_error(request: Incoming, problem: Exception) -> dict[str, Any]:
    return error(request.id, INTERNAL_ERROR, log_internal_error(problem, f"MCP {request.method}")[1])
