"""Middleware for runs in virtual time: whoever looks on over HTTP can't change anything."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from dimos_streams.serving.problem_kinds import WATCH_ONLY
from dimos_streams.serving.problems import problem

_READING = ("GET", "HEAD")
_DETAIL = "this run is in virtual time: a function of its seed and inputs, it can be watched but not be commanded"


class WatchOnly:
    """ASGI middleware that lets reading requests pass and refuses all others, and WebSockets except those that are
    known only to show something."""

    def __init__(self, app: ASGIApp, sockets: Iterable[str]) -> None:
        """``sockets`` are the paths of the WebSockets that only show something."""
        self._app = app
        self._sockets = frozenset(sockets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"] not in self._sockets:
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and scope["method"] not in _READING:
            await problem(WATCH_ONLY, _DETAIL)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
