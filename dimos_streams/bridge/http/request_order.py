"""The order in which requests are begun: one that asks for little does not wait for those that ask for much."""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

_FOR_MUCH = frozenset({("GET", "/tool_streams"), ("GET", "/calls"), ("GET", "/mcp"), ("GET", "/metrics")})
"""Answered with as much as the client likes. All else, health and commands above all, is one short answer."""


class RequestOrder:
    """ASGI middleware that begins two requests in a turn of the loop: one for much, and one of the others.

    What it costs to begin one is known only afterwards, a millisecond or two; between any two turns everybody else
    has theirs, the bus among them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._for_much, self._others = _Line(), _Line()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asks = (scope.get("method", scope["type"]), scope["path"])
        is_for_much = scope["type"] == "websocket" or asks in _FOR_MUCH
        await (self._for_much if is_for_much else self._others).turn()
        await self._app(scope, receive, send)


class _Line:
    """One at a time in each turn of the loop, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        """Whether somebody has had this turn of the loop."""

    async def turn(self) -> None:
        """Returns at once if nobody else has had this turn."""
        loop = asyncio.get_running_loop()
        if self._taken:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():  # its client has left
            self._waiting.popleft()
        self._taken = bool(self._waiting)
        if self._taken:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._next, loop)
