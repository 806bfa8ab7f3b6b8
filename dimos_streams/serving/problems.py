"""Errors as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from dimos_streams.client.problems import problem_fields
from dimos_streams.common.invalid import in_a_line, with_values
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.secrets import redacted_data
from dimos_streams.documents.fields import fields_at
from dimos_streams.errors import SkillError
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind

_logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
REPORTED = "dimos_streams.reported"
"""Key of a request's scope: its exception is logged and answered, though the framework raises it again."""


class StatusHeader(NamedTuple):
    """The header that every problem of a status has."""

    name: str
    value: str
    meaning: str
    """The description in ``/openapi.json``."""


HEADERS: Mapping[int, StatusHeader] = {
    401: StatusHeader("WWW-Authenticate", "Bearer", "The scheme of the token: Bearer."),
    415: StatusHeader("Accept", "application/json", "The type that is taken: application/json."),
    426: StatusHeader("Upgrade", "websocket", "What is spoken here: websocket."),
    503: StatusHeader("Retry-After", "1", "Seconds after which another attempt makes sense."),
}


class ProblemError(HTTPException):
    """Raised to answer a request with a problem."""

    def __init__(self, kind: ProblemKind, detail: str, **more: Any) -> None:
        """``more`` are fields for programs, besides those that each problem has."""
        super().__init__(kind.status, detail)
        self.kind = kind
        self.more = more


def problem(kind: ProblemKind, detail: str, **more: Any) -> JSONResponse:
    """A problem response, without secrets: what is refused is often named as it was given."""
    said = redacted_data({"detail": detail, **more})
    content = {"type": kind.type, "title": kind.title, "status": kind.status, **said}
    header = HEADERS.get(kind.status)
    headers = {} if header is None else {header.name: header.value}
    return JSONResponse(content, kind.status, headers=headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer whatever goes wrong in an app with a problem."""
    app.router.default = _no_route
    app.add_exception_handler(SkillError, _skill_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)


async def _skill_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SkillError)
    return problem(problem_kinds.kind_of(error), str(error), **problem_fields(error))


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    field = getattr(request.scope.get("route"), "body_field", None)
    body = None if field is None else field.field_info.annotation

    def names_at(path: Sequence[str | int]) -> Iterable[str]:
        return fields_at(body, path[1:]) if path[:1] == ("body",) else ()

    errors = with_values(error.errors(), "request", names_at)
    return problem(problem_kinds.BAD_REQUEST, in_a_line(errors), errors=errors)


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(problem_kinds.NOT_FOUND.status)


async def _http_error(request: HTTPConnection, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    method = request.scope.get("method", "WS")
    # HEAD has the headers of GET, the body's length among them.
    asked = f"{'GET' if method == 'HEAD' else method} {request.url.path}"
    if isinstance(error, ProblemError):
        return problem(error.kind, f"{asked}: {error.detail}", **error.more)
    if error.status_code == problem_kinds.NOT_FOUND.status:
        return problem(problem_kinds.NOT_FOUND, f"{asked}: {_nowhere(request)}")
    if error.status_code == problem_kinds.METHOD_NOT_ALLOWED.status:
        allowed = ", ".join(_methods(request))
        response = problem(problem_kinds.METHOD_NOT_ALLOWED, f"{asked}: valid here: {allowed}")
        response.headers["Allow"] = allowed
        return response
    return problem(problem_kinds.HTTP_ERROR._replace(status=error.status_code), f"{asked}: {error.detail}")


def _nowhere(request: HTTPConnection) -> str:
    """The text for a path that there is not, with what there is."""
    if request.scope["type"] == "http":
        return "there is no such path; GET /openapi.json lists those that there are"
    sockets = sorted(route.path for route in request.app.routes if isinstance(route, WebSocketRoute))
    return f"there is no such WebSocket (valid: {', '.join(sockets) or 'none here'})"


def _methods(request: HTTPConnection) -> list[str]:
    """The methods that are possible on the path of a request; several routes may have it."""
    here = [route for route in request.app.routes if isinstance(route, Route)]
    return sorted(
        {name for route in here if route.matches(request.scope)[0] != Match.NONE for name in route.methods or ()}
    )


async def _internal_error(request: Request, error: Exception) -> JSONResponse:
    request.scope[REPORTED] = True
    error_id, text = log_internal_error(error, f"{request.method} {request.url.path}")
    return problem(problem_kinds.INTERNAL_ERROR, text, error_id=error_id)


def log_internal_error(error: Exception, where: str) -> tuple[str, str]:
    """Log an error that is a bug; return its id, and the text for the caller, which says how to find it."""
    error_id = secrets.token_hex(4)
    _logger.error("internal error %s in %s", error_id, where, exc_info=error)
    return error_id, internal_error(error_id, error)
