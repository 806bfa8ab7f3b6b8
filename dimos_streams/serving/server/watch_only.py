"""Middleware for what can be watched but not be commanded: whoever looks on over HTTP can't change anything."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from dimos_streams.serving.problem_kinds import WATCH_ONLY
from dimos_streams.serving.problems import problem
from dimos_streams.serving.received import reads


class WatchOnly:
    """ASGI middleware that lets reading requests pass and refuses all others, and WebSockets except those that are
    known only to show something."""

    def __init__(self, app: ASGIApp, why: str, sockets: Iterable[str] | None = None) -> None:
        """``sockets`` are the paths of the WebSockets that only show something; None if all do."""
        self._app = app
        self._why = why
        self._sockets = None if sockets is None else frozenset(sockets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            refused = self._sockets is not None and scope["path"] not in self._sockets
        else:
            refused = scope["type"] == "http" and not reads(scope)
        if refused:
            await problem(WATCH_ONLY, self._why)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
