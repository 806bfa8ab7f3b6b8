"""Finds out which robot a request is from, by its token, before anything else of it is looked at."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dimos_streams import clock
from dimos_streams.common.http.bearer import authorization_in, bearer_token
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.hub.http.hub_kinds import FOREIGN_ROBOT
from dimos_streams.hub.http.refusing import bounded_read
from dimos_streams.hub.storage.robots import token_hash
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError, problem

PREFIX = "/fleet/robots/"
_KNOWN_S = 5.0
"""Time, in seconds, for which a token that was replaced or taken away may still count."""
_MAX_KNOWN = 10_000
_LOOK_UPS = 2
"""Maximum number of tokens that are looked up at a time, however many strangers there are: an operator's order waits
for the same threads."""


class RobotTokens:
    """ASGI middleware: what is below ``PREFIX`` is for the robot of the path, with its own token, and goes to
    ``robots``; all else goes to ``others``."""

    def __init__(self, robots: ASGIApp, others: ASGIApp, storage: HubStorage, executor: Executor) -> None:
        self._robots, self._others = robots, others
        self._storage = storage
        self._executor = executor
        self._known = NewestEntries[str, tuple[str, float]](_MAX_KNOWN)
        """The robot of each token that is one's, by the token's hash, and the time until which that counts."""
        self._looking_up = asyncio.Semaphore(_LOOK_UPS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._others(scope, receive, send)
            return
        try:
            refusal = await self._refusal(scope)
            await (refusal or self._robots)(scope, receive, send)
        except asyncio.CancelledError:
            return  # the server ends, and has cut off whoever waits for a turn: that is no mistake

    async def _refusal(self, scope: Scope) -> Response | None:
        asked, _, what = scope["path"][len(PREFIX) :].partition("/")
        asked = asked[:100]
        token = bearer_token(authorization_in(scope["headers"]))
        if not token:
            detail = f"send the token of robot {asked!r} as 'Authorization: Bearer ...'"
            return _closing(problem(problem_kinds.TOKEN_NEEDED, detail))
        try:
            # A stream outlives what is known of its token.
            robot = await self._robot_of(token, anew=what == "commands")
        except ProblemError as error:
            return _closing(problem(error.kind, error.detail))
        if not robot:
            detail = f"this token is no robot's of this fleet; `dimos-streams hub robots add {asked}` makes one"
            return _closing(problem(FOREIGN_ROBOT, detail))
        if robot != asked:
            return _closing(problem(FOREIGN_ROBOT, f"this token is robot {robot!r}'s, not {asked!r}'s"))
        return None

    async def _robot_of(self, token: str, *, anew: bool) -> str:
        key = token_hash(token)
        robot, until = self._known.get(key, ("", 0.0))
        if clock.monotonic() < until and not anew:
            return robot
        async with bounded_read(), self._looking_up:
            robot = await in_thread(self._executor, self._storage.robots.of_token, token)
        if not robot:  # strangers have as many tokens as they like
            self._known.pop(key, None)
            return robot
        self._known[key] = robot, clock.monotonic() + _KNOWN_S
        return robot


def _closing(response: Response) -> Response:
    """A response that ends the connection: the rest of the request is not read."""
    response.headers["Connection"] = "close"
    return response
