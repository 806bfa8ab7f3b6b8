"""A fleet hub that is killed, restarted, and has a database that is slow or away; it serves without a network."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from starlette.types import ASGIApp

from dimos_streams import clock
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.process import FleetHub
from dimos_streams.hub.settings import HubSettings
from dimos_streams.hub.storage.rows import StorageUnavailableError
from tests.fleet.simulation.asgi import Answer, Exchange, ask
from tests.fleet.simulation.plan import ROBOTS, LineFaults

T = TypeVar("T")

_START_AGAIN_S = 0.5
_LOST = 0.3
"""Share of the statements that fail while the database is away."""


class HubDownError(DimosStreamsError):
    """The error that the hub does not run, or was killed before it answered."""


def token_of(robot: str) -> str:
    """The token of a robot."""
    return f"token of {robot}".replace(" ", "-")


class _Server:
    """Stands for the hub's HTTP server, and serves nobody."""

    url = "http://127.0.0.1:7790"

    def __init__(self, *_: Any, **__: Any) -> None:
        self.app: ASGIApp | None = None

    def bind(self) -> None: ...

    def release(self) -> None: ...

    def abort(self, *_: Any) -> None: ...

    async def serve(self, app: ASGIApp) -> None:
        self.app = app

    async def stop(self) -> None: ...


class _Process(FleetHub):
    """One life of the hub."""

    is_dead = False
    parts: HubParts

    async def _begin(self, parts: HubParts) -> None:
        self.parts = parts
        await super()._begin(parts)

    @property
    def app(self) -> ASGIApp:
        app: ASGIApp | None = getattr(self._server, "app", None)
        if app is None:
            raise HubDownError("the hub starts")
        return app

    async def kill(self) -> None:
        self.is_dead = True
        await end_tasks_silently(*self._tasks)
        self.parts.storage.close()


class HubClock:
    """The wall clock of the hub's machine, which may be set; stands for ``dimos_streams.clock`` in its database."""

    steady = staticmethod(clock.steady)

    def __init__(self) -> None:
        self.offset_s = 0.0

    def utime(self) -> int:
        """See ``dimos_streams.clock``."""
        return clock.utime() + round(self.offset_s * 1e6)


class SimulatedHub:
    """A hub with its database in a directory."""

    def __init__(self, directory: Path, faults: LineFaults, rng: random.Random) -> None:
        self.faults = faults
        self.clock = HubClock()
        self.is_away = False
        """True if its database takes and gives nothing at times."""
        self.process: _Process | None = None
        self._directory, self._rng = directory, rng
        self._requests: set[asyncio.Task[Any]] = set()
        self._run_inline = asyncio.get_running_loop().run_in_executor

    async def start(self) -> None:
        """Start it, with what its database has; as soon as that can be read."""
        while self.process is None:
            try:
                await self._start()
            except StorageUnavailableError:
                await asyncio.sleep(_START_AGAIN_S)

    async def _start(self) -> None:
        process = None

        def run(executor: Any, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
            threads = getattr(getattr(process, "parts", None), "threads", None)
            if process is None or threads is None or executor not in vars(threads).values():
                return self._run_inline(executor, work, *arguments)
            return asyncio.ensure_future(self._in_database(process, lambda: work(*arguments)))

        with mock.patch("dimos_streams.hub.process.HttpServer", _Server):
            process = _Process(HubSettings(database=f"sqlite:///{self._directory}/hub.sqlite"))
        asyncio.get_running_loop().run_in_executor = run  # type: ignore[method-assign, assignment]
        await process.start()
        self.process = process
        for robot in ROBOTS:
            with contextlib.suppress(DimosStreamsError):  # it is known already
                process.parts.storage.robots.add(robot, token_of(robot))

    async def stop(self, *, kill: bool) -> None:
        """Stop it, or kill it: then nothing more of it is answered or stored."""
        process, self.process = self.process, None
        if process is None:
            return
        if not kill:
            await process.stop()
            process.is_dead = True
        for request in self._requests:
            request.cancel()
        if kill:
            await process.kill()

    async def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Answer:
        """Ask it something. Raises ``HubDownError``."""
        answer = await self._served(ask(self._alive().app, method, path, body, token))
        if not answer.status:
            raise HubDownError("the hub was killed before it answered")
        return answer

    async def serve(self, exchange: Exchange) -> None:
        """Let it answer a request. Raises ``HubDownError``."""
        await self._served(exchange.run(self._alive().app))

    def _alive(self) -> _Process:
        if self.process is None:
            raise HubDownError("the hub does not run")
        return self.process

    async def _served(self, request: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(request)
        self._requests.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                raise
            raise HubDownError("the hub was killed before it answered") from None
        finally:
            self._requests.discard(task)

    async def _in_database(self, process: _Process, work: Callable[[], T]) -> T:
        rng = self._rng
        await asyncio.sleep(rng.choice((0.0, 0.0, self.faults.database_s)))
        if process.is_dead or (self.is_away and rng.random() < _LOST):
            raise StorageUnavailableError("the database is away")
        done = work()
        if process.is_dead or (self.is_away and rng.random() < _LOST):
            raise StorageUnavailableError("the database is away, and has done it")
        return done
