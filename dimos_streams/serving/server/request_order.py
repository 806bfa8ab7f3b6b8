"""The order in which requests are begun: one that asks for little does not wait for those that ask for much."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import problem
from dimos_streams.serving.received import again, reads

_FOR_MUCH = frozenset({"/tool_streams", "/events", "/calls", "/mcp", "/metrics"})
"""Paths that are answered, if they are read, with as much as the client likes. All else, health and commands above
all, is one short answer."""
_ENDING = ("/robots/stop", "/cancel")
"""The ends of the paths by which robots are stopped and calls are ended; at a hub a robot's path may stand before
them."""
_OVERTAKEN = {"/robots/release": "/robots/stop", "/calls": "/calls/cancel"}
"""The ends of the paths of what would undo, if it came later, what came by the other path."""
_log = LimitedLog(logging.getLogger(__name__))


_TURN = "dimos_streams.turn"
"""Key under which a request's scope has the turn that it waits for."""


class RequestOrder:
    """ASGI middleware that begins three requests in a turn of the loop: one for much, one that reads a short answer,
    and one that brings something, whose body may be long in coming.

    What it costs to begin one is known only afterwards, a millisecond or two; between any two turns everybody else
    has theirs, the bus among them. An order that robots stand still, or that calls end, waits for nobody, and is
    carried out if its client has left. Servers do not end the request of a client that leaves: see ``leave``.
    """

    def __init__(
        self,
        app: ASGIApp,
        outdated_s: Callable[[], float] = lambda: 0.0,
        ends: Callable[[str, bytes], bool] = lambda path, body: False,
    ) -> None:
        """``outdated_s`` returns the time, in seconds, until all has been read that came while this process stood
        still for so long that clients may have given up and left; 0 if it did not. ``ends`` returns whether a request
        of a path and a body ends something, and so is carried out also if its client has left."""
        self._app = app
        self._outdated_s = outdated_s
        self._ends = ends
        self._for_much, self._reading, self._bringing = _RequestLine(), _RequestLine(), _RequestLine()
        self._standing = asyncio.Lock()
        """Held by the request that waits until all is read that came while this process stood still: those behind it
        keep their order, whatever timers do."""
        self._ended = Counter[str]()
        """Numbers of orders that have overtaken others, by the ends of their paths."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "POST" and scope["path"].endswith(_ENDING):
            self._ended.update(each for each in _OVERTAKEN.values() if scope["path"].endswith(each))
            await self._app(scope, receive, send)
            return
        by = next((end for begin, end in _OVERTAKEN.items() if scope["path"].endswith(begin)), "")
        ended = self._ended[by]
        is_wanted, receive = await self._is_wanted(scope, receive)
        if not is_wanted:
            return
        if self._ended[by] > ended:
            detail = f"POST {by} came while this waited, and is not to be undone; ask anew"
            await problem(problem_kinds.CONFLICT, detail)(scope, receive, send)
        elif await self._line(scope).turn(scope):
            await self._app(scope, receive, send)

    async def _is_wanted(self, scope: Scope, receive: Receive) -> tuple[bool, Receive]:
        """Return whether a request is to be carried out: not if it would come when nobody expects it any more, as its
        client left while this process stood still. And return what receives it from then on."""
        if reads(scope):
            return True, receive
        if not (self._standing.locked() or self._outdated_s()):
            return True, receive
        left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        scope[_TURN] = left
        async with self._standing:
            await asyncio.wait([left], timeout=self._outdated_s())
        if left.done():
            if any(name == b"content-length" for name, _ in scope["headers"]):
                whole = await receive()  # the guard has it
                if self._ends(scope["path"], whole.get("body", b"")):
                    return True, again(whole, receive)
            _log.warning("%s %s is not carried out: its client left meanwhile", scope["method"], scope["path"])
            return False, receive
        del scope[_TURN]
        return True, receive

    def _line(self, scope: Scope) -> _RequestLine:
        if not reads(scope):
            return self._bringing
        is_for_much = scope["type"] == "websocket" or scope["path"] in _FOR_MUCH
        return self._for_much if is_for_much else self._reading


def leave(scope: Scope) -> None:
    """Let a request whose client is gone wait no more. Nothing happens if it does not wait."""
    turn: asyncio.Future[bool] | None = scope.pop(_TURN, None)
    if turn is not None and not turn.done():
        turn.set_result(False)


class _RequestLine:
    """A queue of requests, one of which has its turn in each turn of the loop, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._taken = False
        """True if somebody has had this turn of the loop."""

    async def turn(self, scope: Scope) -> bool:
        """Wait for a turn; this one, if nobody else has had it. Return False if the client has left meanwhile."""
        loop = asyncio.get_running_loop()
        if self._taken:
            turn: asyncio.Future[bool] = loop.create_future()
            self._waiting.append(turn)
            scope[_TURN] = turn
            return await turn
        self._taken = True
        loop.call_soon(self._next, loop)
        return True

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():  # its client has left
            self._waiting.popleft()
        self._taken = bool(self._waiting)
        if self._taken:
            self._waiting.popleft().set_result(True)
            loop.call_soon(self._next, loop)
