"""``/mcp``: the streamable HTTP transport of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import ValidationError
from pydantic_core import to_json

from dimos_streams.bridge.mcp import rpc_openapi
from dimos_streams.bridge.mcp.awaited import Awaited
from dimos_streams.bridge.mcp.greeting import RESUMING, VERSIONS
from dimos_streams.bridge.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Incoming, RpcError, error
from dimos_streams.bridge.mcp.rpc_openapi import SESSION, VERSION
from dimos_streams.bridge.mcp.server import McpServer, Messages
from dimos_streams.bridge.mcp.sessions import Session, SessionsBusyError
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.common.tasks import ends_within, outlasting
from dimos_streams.serving.events.event_frame import event_frame
from dimos_streams.serving.events.event_response import EventResponse

NOTICE_S = 0.5
"""Maximum time, in seconds, for which a client waits until its notification has been carried out, which goes on after
that: clients send nothing else meanwhile, and a call to end may be at another hub, or its robot may not answer."""


def mount_mcp(app: FastAPI, server: McpServer) -> None:
    """Add the routes to an app."""

    @app.post("/mcp", response_class=Response, response_model=None, **rpc_openapi.POST)
    async def post_mcp(request: Request) -> Response:
        try:
            message = Incoming.model_validate(parse_client_json(await request.body()))
        except ValidationError as problem:
            return _refusal(400, INVALID_REQUEST, f"not a JSON-RPC message: {first_problem(problem, 'the message')}")
        except ValueError as problem:
            return _refusal(400, PARSE_ERROR, f"not JSON: {problem}")
        return await _answer_without_session(server, request, message) or await _answer(server, request, message)

    @app.get("/mcp", response_class=Response, response_model=None, **rpc_openapi.GET)
    async def get_mcp(request: Request) -> Response:
        if not _takes_streams(request):
            return _refusal(406, INVALID_REQUEST, "GET gives text/event-stream, which `Accept` does not allow")
        found = _session(server, request, None)
        if isinstance(found, Response):
            return found
        awaited = Awaited.named(request.headers.get("Last-Event-ID", ""))
        if awaited and found.has_given_up(awaited.request, awaited.call_id):
            # Clients take a stream without an answer for one that was cut, and come again for ever.
            return _refusal(410, INVALID_REQUEST, "the request was cancelled: there is no answer", awaited.request)
        refused = server.why_not_listen(found, awaited)
        if refused:
            return _refusal(503, INVALID_REQUEST, refused, headers={"Retry-After": "5"})
        return EventResponse(_frames(server.answer_again(found, awaited) if awaited else server.listen(found)))

    @app.delete("/mcp", status_code=204, response_model=None, **rpc_openapi.DELETE)
    async def delete_mcp(request: Request) -> Response:
        found = _session(server, request, None)
        if isinstance(found, Response):
            return found
        server.sessions.end(found.id)
        return Response(status_code=204)


async def _answer_without_session(server: McpServer, request: Request, message: Incoming) -> Response | None:
    """The answer to a message that belongs to no session, or begins one; None for any other."""
    try:
        if message.wants_no_session and not _names_session(request):
            return _json(await server.answer_alone(message))
        if message.method == "initialize" and message.id is not None:
            session, response = await server.initialize(message)
            return _json(response, headers={SESSION: session.id})
    except SessionsBusyError as problem:
        return _busy(problem, message.id)
    except RpcError as problem:
        return _json(error(message.id, problem.code, str(problem)))
    return None


async def _answer(server: McpServer, request: Request, message: Incoming) -> Response:
    """The answer to a message of a session."""
    found = _session(server, request, message.id)
    if isinstance(found, Response):
        return found
    if message.id is None or message.method is None:
        noting = asyncio.create_task(server.notice(found, message), name=f"a notification of {found.caller}")
        await ends_within(NOTICE_S, outlasting(noting))
        return Response(status_code=202)
    resumes = request.headers.get(VERSION) in RESUMING
    if server.wants_stream(message, resumes=resumes) and _takes_streams(request):
        return EventResponse(_frames(server.follow(found, message, resumes=resumes)))
    answer = await server.answer(found, message)
    return _json(answer) if answer is not None else Response(status_code=202)


def _names_session(request: Request) -> bool:
    """Return whether a request names a session, or the version that was agreed on for it."""
    return SESSION in request.headers or VERSION in request.headers


def _takes_streams(request: Request) -> bool:
    """Return whether a client can read server-sent events: it says so, as it should, or nothing against it."""
    accepted = [each.partition(";")[0].strip().lower() for each in request.headers.get("Accept", "*/*").split(",")]
    return any(each in ("text/event-stream", "text/*", "*/*") for each in accepted)


def _session(server: McpServer, request: Request, id: str | int | None) -> Session | Response:
    """The session of a request, or the response that refuses it."""
    version = request.headers.get(VERSION, VERSIONS[0])
    if version not in VERSIONS:
        valid = ", ".join(VERSIONS)
        return _refusal(400, INVALID_REQUEST, f"protocol {version[:50]!r} is not spoken here (valid: {valid})", id)
    given = request.headers.get(SESSION)
    if given is None:
        return _refusal(400, INVALID_REQUEST, f"{SESSION} is missing; begin with `initialize`", id)
    try:
        found = server.sessions.get(given)
    except SessionsBusyError as problem:
        return _busy(problem, id)
    return found or _refusal(404, INVALID_REQUEST, "no such session; begin with `initialize`", id)


async def _frames(messages: Messages) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(messages):
        async for message in messages:
            if message is None:
                yield b": ping\n\n"
            elif isinstance(message, Awaited):
                yield message.frame
            else:
                yield event_frame(b"message", to_json(message, inf_nan_mode="null"))
            # That a connection is gone is known in the loop's next turn, and others have theirs.
            await asyncio.sleep(0)


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(content, inf_nan_mode="null"), status, headers=headers, media_type="application/json")


def _busy(problem: SessionsBusyError, id: str | int | None) -> Response:
    return _refusal(503, INTERNAL_ERROR, str(problem), id, {"Retry-After": "5"})


def _refusal(
    status: int, code: int, text: str, id: str | int | None = None, headers: dict[str, str] | None = None
) -> Response:
    return _json(error(id, code, text), status, headers)
