"""Errors as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dimos_streams.bridge.calls.broker import UnknownCallError
from dimos_streams.common.invalid import in_a_line, what_is_wrong, where_it_is
from dimos_streams.errors import (
    CallRejectedError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownSkillError,
)

_logger = logging.getLogger(__name__)

REPORTED = "dimos_streams.reported"
"""Key of a request's scope: its exception is logged and answered, though the framework raises it again."""

_SKILL_ERRORS: tuple[tuple[type[SkillError], int, str, str], ...] = (
    (UnknownSkillError, 404, "unknown-skill", "No such skill"),
    (UnknownAgentError, 404, "unknown-agent", "No such agent"),
    (UnknownCallError, 404, "unknown-call", "No such call"),
    (SkillArgumentError, 422, "bad-arguments", "The arguments do not fit the skill"),
    (CallRejectedError, 409, "call-rejected", "The call was refused"),
    (SkillUnavailableError, 503, "skill-unavailable", "The skill is not available"),
    (SkillError, 400, "skill-error", "The skill refused"),
)


class NotJsonError(HTTPException):
    """The body of a request is not JSON."""

    def __init__(self, why: object) -> None:
        super().__init__(400, f"The body is not JSON: {why}")


def problem(status: int, name: str, title: str, detail: str, **more: Any) -> JSONResponse:
    """A problem response; ``name`` ends its type, by which programs distinguish problems."""
    content = {
        "type": f"urn:dimos-streams:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
        **more,
    }
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    return JSONResponse(content, status, headers=headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Answer whatever goes wrong in an app with a problem."""
    app.add_exception_handler(SkillError, _skill_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)


async def _skill_error(request: Request, error: Exception) -> JSONResponse:
    more: dict[str, Any] = {}
    if isinstance(error, SkillArgumentError):
        more["errors"] = error.problems
    if isinstance(error, CallRejectedError) and error.holder:
        more["holder"] = error.holder
    status, name, title = next((s, n, t) for kind, s, n, t in _SKILL_ERRORS if isinstance(error, kind))
    return problem(status, name, title, str(error), **more)


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = {where_it_is(detail, "request"): what_is_wrong(detail) for detail in error.errors()}
    return problem(422, "bad-request", "The request is not of the right form", in_a_line(errors), errors=errors)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    names = {400: "bad-request", 404: "not-found", 405: "method-not-allowed", 422: "bad-request"}
    name = "bad-json" if isinstance(error, NotJsonError) else names.get(error.status_code, "http-error")
    return problem(error.status_code, name, str(error.detail), f"{request.method} {request.url.path}: {error.detail}")


async def _internal_error(request: Request, error: Exception) -> JSONResponse:
    request.scope[REPORTED] = True
    error_id = log_internal_error(error, f"{request.method} {request.url.path}")
    return problem(500, "internal-error", "Internal error", f"internal error {error_id}", error_id=error_id)


def log_internal_error(error: Exception, where: str) -> str:
    """The details are for the log; the caller gets the id that this returns, to find them by."""
    error_id = secrets.token_hex(4)
    _logger.error("internal error %s in %s", error_id, where, exc_info=error)
    return error_id
