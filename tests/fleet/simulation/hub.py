"""A fleet hub that is killed, restarted, and has a database that is slow or away; it serves without a network."""

from __future__ import annotations

import asyncio
import contextlib
import json
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
from dimos_streams.hub.storage.engines.sqlite import SqliteEngine
from dimos_streams.hub.storage.robots import UnknownFleetRobotError
from dimos_streams.hub.storage.rows import StorageUnavailableError
from tests.fleet.simulation.asgi import Answer, Exchange, ask
from tests.fleet.simulation.database import HubDatabase
from tests.fleet.simulation.plan import ROBOTS, LineFaults

T = TypeVar("T")

_START_AGAIN_S = 0.5
_KNOWN_S = 5.5
"""Maximum time, in seconds, for which a token is good after it was replaced."""
_MOST_PAGES = 1 << 30
_LOST = 0.3
"""Share of the statements that fail while the database is away."""


class HubDownError(DimosStreamsError):
    """The error that the hub does not run, or was killed before it answered."""


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


class WallClock:
    """The clock of a machine, which may be set; stands for ``dimos_streams.clock``."""

    steady, monotonic = staticmethod(clock.steady), staticmethod(clock.monotonic)

    def __init__(self) -> None:
        self.offset_s = 0.0

    def utime(self) -> int:
        """See ``dimos_streams.clock``."""
        return clock.utime() + round(self.offset_s * 1e6)


class SimulatedHub:
    """A hub with its database in a directory."""

    def __init__(self, directory: Path, faults: LineFaults, rng: random.Random) -> None:
        self.faults = faults
        self.clock = WallClock()
        self.database = HubDatabase(directory)
        self.tokens: dict[str, str] = {}
        """The tokens of robots."""
        self.replaced: dict[str, float] = {}
        """The times at which tokens were replaced, or taken away."""
        self.copies = 0
        """The number of times that a copy of the database was put back."""
        self.moments: list[str] = []
        """Broken promises that were seen while it ran."""
        self.set_back_s = 0.0
        """The time, in seconds, by which its clock was set back while it was down, as far as that is no longer than a
        command is valid: then what waits may be carried out so much later."""
        self.is_away = False
        """True if its database takes and gives nothing at times."""
        self.process: _Process | None = None
        self._removed: set[str] = set()
        """The robots that were removed since the copy was made."""
        self._rng = rng
        self._requests: dict[asyncio.Task[Any], None] = {}
        self._run_inline = asyncio.get_running_loop().run_in_executor

    async def start(self) -> None:
        """Start it, with what its database has; as soon as that can be read."""
        for robot in ROBOTS:
            if robot not in self.tokens:
                self.admit(robot)
        while self.process is None:
            try:
                await self._start()
            except StorageUnavailableError:
                await asyncio.sleep(_START_AGAIN_S)

    def admit(self, robot: str) -> None:
        """Give a robot a token, in the place of the one that it had."""
        self._end_token(robot)
        with self.database.robots() as robots:
            self.tokens[robot] = robots.add(robot, f"token-{self._rng.getrandbits(96):024x}", again=True)

    def copy(self) -> None:
        """Make a copy of its database."""
        self._removed.clear()
        self.database.copy()

    def remove(self, robot: str) -> None:
        """Take a robot's token away."""
        self._removed.add(robot)
        self._end_token(robot)
        with self.database.robots() as robots:
            robots.remove(robot)

    async def try_old_tokens(self) -> None:
        """Ask as those would who have the tokens of before; what they are answered is a broken promise."""
        for token in self.replaced:
            for robot in ROBOTS:
                await self.ask("GET", f"/fleet/robots/{robot}/position?journal=of-nobody", token=token)

    def put_back(self) -> None:
        """Put its database back from the copy, if there is one. Tokens are those of then: all that was done about
        robots since is done once more."""
        if self.database.put_back():
            self.copies += 1
            for robot in self._removed:
                with self.database.robots() as robots, contextlib.suppress(UnknownFleetRobotError):
                    robots.remove(robot)
            for robot in ROBOTS:
                self.admit(robot)

    def fill_disk(self, *, is_full: bool) -> None:
        """Let its database grow no more, or again."""
        if self.process is not None:
            engine = self.process.parts.storage.engine
            assert isinstance(engine, SqliteEngine)
            for db in engine._connections:
                db.execute(f"PRAGMA max_page_count={1 if is_full else _MOST_PAGES}")

    def _end_token(self, robot: str) -> None:
        if robot in self.tokens:
            self.replaced[self.tokens.pop(robot)] = clock.monotonic()

    async def _start(self) -> None:
        process = None

        def run(executor: Any, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
            threads = getattr(getattr(process, "parts", None), "threads", None)
            if process is None or threads is None or executor not in vars(threads).values():
                return self._run_inline(executor, work, *arguments)
            return asyncio.ensure_future(self._in_database(process, lambda: work(*arguments)))

        with mock.patch("dimos_streams.hub.process.HttpServer", _Server):
            process = _Process(HubSettings(database=self.database.url))
        asyncio.get_running_loop().run_in_executor = run  # type: ignore[method-assign, assignment]
        await process.start()
        self.process = process

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
        self._check(path, body, token, answer)
        return answer

    def _check(self, path: str, body: Any, token: str, answer: Answer) -> None:
        """Note what a robot was answered that is not so."""
        _, _, robot, what = f"{path}//".removeprefix("/fleet").split("/", 3)
        if not token or not 200 <= answer.status < 300:
            return
        if clock.monotonic() - self.replaced.get(token, float("inf")) > _KNOWN_S:
            self.moments.append(f"{path} is answered to whoever has an old token")
        if what.startswith("batches"):
            journal, upto = json.loads(body)["journal"], answer.json["acknowledged"]
            if self.database.acknowledged(robot, journal) < upto:
                self.moments.append(f"{robot}: offset {upto} of {journal} is acknowledged and not on the disk")
        if what.startswith("answers") and not self.database.is_answered(robot, json.loads(body)["id"]):
            self.moments.append(f"{robot}: the answer to command {json.loads(body)['id']} is taken and not kept")

    async def serve(self, exchange: Exchange) -> None:
        """Let it answer a request. Raises ``HubDownError``."""
        await self._served(exchange.run(self._alive().app))

    def _alive(self) -> _Process:
        if self.process is None:
            raise HubDownError("the hub does not run")
        return self.process

    async def _served(self, request: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(request)
        self._requests[task] = None
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                raise
            raise HubDownError("the hub was killed before it answered") from None
        finally:
            self._requests.pop(task, None)

    async def _in_database(self, process: _Process, work: Callable[[], T]) -> T:
        rng = self._rng
        await asyncio.sleep(rng.choice((0.0, 0.0, self.faults.database_s)))
        if process.is_dead or (self.is_away and rng.random() < _LOST):
            raise StorageUnavailableError("the database is away")
        done = work()
        if process.is_dead or (self.is_away and rng.random() < _LOST):
            raise StorageUnavailableError("the database is away, and has done it")
        return done
