"""The common part of all routes: bodies must be JSON and declared as JSON, and HEAD goes with GET."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dimos_streams.common.json.reading import parse_client_json, parse_command
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError
from dimos_streams.serving.query_names import (
    check_headers,
    check_numbers,
    check_query,
    header_names,
    number_names,
    query_names,
)

_JSON = re.compile(r"application/(?!problem\+)([\w!#$&^.+-]+\+)?json", re.IGNORECASE | re.ASCII)
"""Content types that are JSON: also those of a client's own whose names say so (RFC 6838). A problem is none of them:
it is an answer, and a client that sends one as a request has mixed up the two."""


def parsed_body(body: bytes, parse: Callable[[bytes], Any] = parse_command) -> Any:
    """A body as JSON. Raises ``ProblemError`` if it is not: NaN, too deep for recursion, half of a character."""
    try:
        return parse(body)
    except ValueError as error:
        raise ProblemError(problem_kinds.BAD_JSON, f"the body is not JSON: {error}") from error


class _StrictJsonRequest(Request):
    async def json(self) -> Any:
        """The body as JSON, of a client. Raises as ``parsed_body`` does."""
        return parsed_body(await self.body(), parse_client_json)

    async def check_media_type(self) -> None:
        """Refuse a body that is not declared as JSON, as it is.

        Browsers send other types for any page without asking the server first, and JSON only where it consents.
        """
        coding = self.headers.get("content-encoding", "identity")
        if coding.lower() not in ("", "identity") and await self.body():
            text = f"Content-Encoding {coding[:100]!r} is not taken; valid: JSON as it is, without that header"
            raise ProblemError(problem_kinds.NOT_DECLARED_JSON, text)
        given = self.headers.get("content-type")
        if not _JSON.fullmatch((given or "").partition(";")[0].strip()) and await self.body():
            what = "Content-Type is missing" if given is None else f"Content-Type {given[:100]!r} is not taken"
            raise ProblemError(problem_kinds.NOT_DECLARED_JSON, f"{what}; valid: 'application/json'")


class StrictRoute(APIRoute):
    """A route whose body is JSON, if it takes one, and that answers HEAD with the headers alone."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        names, headers, numbers = query_names(self), header_names(self), number_names(self)

        async def handle_strictly(request: Request) -> Response:
            if names:
                check_query(request, names)
                check_numbers(request, numbers)
            check_headers(request, headers)
            strict = _StrictJsonRequest(request.scope, request.receive)
            try:
                if request.method == "POST":
                    await strict.check_media_type()
                response = await handle(strict)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody is there to read it
            return _headers_only(response) if request.method == "HEAD" else response

        return handle_strictly


def answer_head(app: FastAPI) -> None:
    """Answer HEAD wherever an app answers GET so far (RFC 9110 section 9.1)."""
    for route in list(app.routes):
        if isinstance(route, StrictRoute) and "GET" in (route.methods or ()):
            app.router.routes.append(Route(route.path, _Endpoint(route.app), methods=["HEAD"]))


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An app wrapped in an object: the framework would take a function for one that takes a request."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


def _headers_only(response: Response) -> Response:
    """The head of a response; a stream is not begun."""
    head = Response(status_code=response.status_code)
    head.raw_headers = response.raw_headers
    return head
