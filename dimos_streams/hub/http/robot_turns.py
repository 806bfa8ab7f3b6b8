"""Turns of a robot's requests: none keeps the hub from all others, whatever it sends and on how many connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dimos_streams import clock
from dimos_streams.hub.http.robot_tokens import PREFIX
from dimos_streams.serving.received import reads

_PACED = frozenset({"batches", "reports"})
"""What may cost tens of milliseconds to read."""
_PACED_AT_A_TIME = 3
"""Maximum number of each of these of a robot that are worked on: one, and what cut links have left half sent."""
_AT_A_TIME = 4
"""Maximum number of other requests of a robot that bring something and are worked on, and of those that only read.
The one for a new stream of commands, by which the robot hears of a stop, thus waits for nothing that is half sent. A
robot that is sound has three connections."""
_AT_ONCE_S = 1.0
"""The pauses, in seconds, that a robot may leave out: it may have been silent, and has several things to say."""


class RobotTurns:
    """ASGI middleware for what is below ``PREFIX``. Nothing is refused: what comes too soon waits, before its body is
    read, and only for the same robot's."""

    def __init__(self, app: ASGIApp, pace_s: Callable[[], float]) -> None:
        """``pace_s`` returns the pause, in seconds, that robots are asked to leave between their batches."""
        self._app = app
        self._pace_s = pace_s
        self._places = defaultdict[tuple[str, bool], asyncio.Semaphore](lambda: asyncio.Semaphore(_AT_A_TIME))
        self._lines = defaultdict[tuple[str, str], _Line](_Line)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        robot, _, what = scope["path"].removeprefix(PREFIX).partition("/")
        async with contextlib.AsyncExitStack() as stack:
            if what in _PACED:
                await stack.enter_async_context(self._lines[robot, what].turn(self._pace_s))
            else:
                await stack.enter_async_context(self._places[robot, reads(scope)])

            async def send_on(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await stack.aclose()  # a stream of commands goes on for minutes
                await send(message)

            await self._app(scope, receive, send_on)


class _Line:
    """A robot's requests of one kind, at a pace."""

    def __init__(self) -> None:
        self._in_hand = asyncio.Semaphore(_PACED_AT_A_TIME)
        self._next_at = 0.0
        """The time at which the next one would begin that keeps the pace."""

    @contextlib.asynccontextmanager
    async def turn(self, pace_s: Callable[[], float]) -> AsyncGenerator[None]:
        """Wait until it is this request's turn, which lasts until the end of the context."""
        async with self._in_hand:
            now = clock.monotonic()
            begin_at = max(self._next_at, now)
            self._next_at = begin_at + pace_s()
            await asyncio.sleep(begin_at - _AT_ONCE_S - now)
            yield
