"""The way from a robot to its hub: it loses requests and answers, holds commands up, and is cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import urlencode

from dimos_streams import clock
from dimos_streams.bridge.fleet.connection import HubConnection, _message
from dimos_streams.bridge.fleet.hub_requests import HubUnreachableError
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.client.event_stream.sse_parser import SseParser
from dimos_streams.fleet.commands import Command, Hello
from tests.fleet.simulation.asgi import Exchange
from tests.fleet.simulation.hub import HubDownError, SimulatedHub

_FOR_EVER_S = 1e6
_SHUT_OUT_S = 5.0
"""Maximum time, in seconds, for which a stream goes on after its token was replaced."""


class Line(HubConnection):
    """The connection of one life of a robot's bridge."""

    def __init__(self, robot: str, hub: SimulatedHub, rng: random.Random, *, is_away: Callable[[], bool]) -> None:
        """``is_away`` says whether no hub can be reached."""
        super().__init__(HubLinkSettings(url="http://hub", robot=robot), rng=rng)
        self.is_dead = False
        """True if the bridge was killed: nothing that comes reaches it."""
        self._process = f"p{rng.getrandbits(96):024x}"
        self._robot, self._hub, self._is_away = robot, hub, is_away
        self._path = f"/fleet/robots/{robot}"
        self._streams: dict[Exchange, asyncio.Task[None]] = {}

    def cut(self, *, noticed_after_s: float) -> None:
        """Cut the streams of commands; the hub notices that later."""
        for exchange in self._streams:
            exchange.cut()
            asyncio.get_running_loop().call_later(noticed_after_s, exchange.leave)

    async def _request(self, line: Any, method: str, path: str, body: bytes | None = None) -> bytes:
        async with line.turn:
            copies = self._hub.copies
            await self._begin()
            if self._hub.copies != copies:
                raise HubUnreachableError("it was on its way to a hub that is gone")
            answering = asyncio.ensure_future(self._hub.ask(method, self._path + path, body, self._token))
            answering.add_done_callback(lambda task: task.cancelled() or task.exception())
            try:
                answer = await asyncio.shield(answering)  # who is gone does not take back what was sent
            except HubDownError as error:
                raise HubUnreachableError(str(error)) from error
            await self._end()
        if 200 <= answer.status < 300:
            return answer.content
        raise self._refusal(answer.status, answer.content)

    async def commands(self) -> AsyncGenerator[Hello | Command, None]:
        """See ``HubRequests``."""
        await self._begin()
        id = f"s{self._random.getrandbits(96):024x}"
        query = urlencode({"stream": id, "process": self._process})
        token = self._token
        exchange = Exchange(
            "GET", f"{self._path}/commands?{query}", token=token, on_piece=lambda piece: self._check(piece, token)
        )
        serving = asyncio.ensure_future(self._serve(exchange))
        self._streams[exchange] = serving
        try:
            parser = SseParser()
            async for piece in exchange.pieces():
                await asyncio.sleep(self._random.choice((0.0, 0.0, self._hub.faults.held_s)))
                await self._end()
                if exchange.status != 200:
                    raise self._refusal(exchange.status, piece)
                for event in parser.feed(piece):
                    message = _message(event, id)
                    if message is not None:
                        yield message
        finally:
            del self._streams[exchange]
            after_s = self._random.choice((0.0, self._hub.faults.unnoticed_s))
            asyncio.get_running_loop().call_later(after_s, exchange.leave)
        raise HubUnreachableError("its stream of commands: it ended")

    @property
    def _token(self) -> str:
        return self._hub.tokens.get(self._robot, "token-of-nobody")

    def _check(self, piece: bytes, token: str) -> None:
        """Note a command that the hub sends to whoever has an old token."""
        is_old = clock.monotonic() - self._hub.replaced.get(token, float("inf")) > _SHUT_OUT_S
        if is_old and piece.startswith(b"event: command"):
            self._hub.moments.append(f"{self._robot} is sent a command with an old token")

    async def _serve(self, exchange: Exchange) -> None:
        try:
            await self._hub.serve(exchange)
        except HubDownError:
            exchange.cut()

    async def _begin(self) -> None:
        rng = self._random
        await asyncio.sleep(rng.choice((0.0, 0.01, self._hub.faults.delay_s)))
        if self.is_dead:
            await asyncio.sleep(_FOR_EVER_S)
        if self._is_away() or rng.random() < self._hub.faults.loss:
            raise HubUnreachableError("the request is lost")

    async def _end(self) -> None:
        if self.is_dead:
            await asyncio.sleep(_FOR_EVER_S)
        if self._is_away() or self._random.random() < self._hub.faults.loss / 4:
            raise HubUnreachableError("the answer is lost")
