"""Request bodies whose JSON is JSON: no NaN, no depth that ends in a recursion error, no half of a character."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from dimos_streams.bridge.http.problems import NotJsonError
from dimos_streams.common.text import parse_json


class _StrictJsonRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        try:
            return parse_json(body)
        except ValueError as error:
            raise NotJsonError(error) from error


class StrictJsonRoute(APIRoute):
    """Answers 400 where a body is none."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictJsonRequest(request.scope, request.receive))

        return handle_strictly
