"""``/mcp``: the streamable HTTP transport of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from pydantic_core import to_json

from dimos_streams.bridge.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Incoming, error
from dimos_streams.bridge.mcp.server import VERSIONS, McpServer
from dimos_streams.bridge.mcp.sessions import Session, SessionsBusyError
from dimos_streams.text import parse_json

_SESSION = "Mcp-Session-Id"
_VERSION = "MCP-Protocol-Version"


def mount_mcp(app: FastAPI, server: McpServer) -> None:
    """Add the routes to an app."""

    @app.post("/mcp", response_model=None)
    async def post(request: Request) -> Response:
        try:
            message = Incoming.model_validate(parse_json(await request.body()))
        except ValidationError as problem:
            return _refusal(400, INVALID_REQUEST, f"not a JSON-RPC message: {problem.errors()[0]['msg']}")
        except ValueError as problem:
            return _refusal(400, PARSE_ERROR, f"not JSON: {problem}")
        if message.method == "initialize" and message.id is not None:
            try:
                session, response = await server.initialize(message)
            except SessionsBusyError as problem:
                return _refusal(503, INTERNAL_ERROR, str(problem), message.id, {"Retry-After": "5"})
            return _json(response, headers={_SESSION: session.id})
        found = _session(server, request, message.id)
        if isinstance(found, Response):
            return found
        if message.id is None or message.method is None:
            await server.notice(found, message)
            return Response(status_code=202)
        if server.wants_progress(message):
            return _stream(server.follow(found, message))
        answer = await server.answer(found, message)
        return _json(answer) if answer is not None else Response(status_code=202)

    @app.get("/mcp", response_model=None)
    async def get(request: Request) -> Response:
        found = _session(server, request, None)
        return found if isinstance(found, Response) else _stream(server.unasked(found))

    @app.delete("/mcp", response_model=None)
    async def delete(request: Request) -> Response:
        found = _session(server, request, None)
        if isinstance(found, Response):
            return found
        server.sessions.end(found.id)
        return Response(status_code=204)


def _session(server: McpServer, request: Request, id: str | int | None) -> Session | Response:
    """The session of a request, or the response that refuses it."""
    version = request.headers.get(_VERSION, VERSIONS[0])
    if version not in VERSIONS:
        return _refusal(400, INVALID_REQUEST, f"protocol {version[:50]!r} is not spoken here (valid: {VERSIONS})", id)
    given = request.headers.get(_SESSION)
    if given is None:
        return _refusal(400, INVALID_REQUEST, f"{_SESSION} is missing; begin with `initialize`", id)
    return server.sessions.get(given) or _refusal(
        404, INVALID_REQUEST, "no such session; begin with `initialize`", id
    )


def _stream(messages: AsyncIterator[dict[str, Any] | None]) -> Response:
    async def frames() -> AsyncIterator[bytes]:
        async for message in messages:
            if message is None:
                yield b": ping\n\n"
            else:
                yield b"event: message\ndata: %b\n\n" % to_json(message, inf_nan_mode="null")

    return StreamingResponse(frames(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(content, inf_nan_mode="null"), status, headers=headers, media_type="application/json")


def _refusal(
    status: int, code: int, text: str, id: str | int | None = None, headers: dict[str, str] | None = None
) -> Response:
    return _json(error(id, code, text), status, headers)
