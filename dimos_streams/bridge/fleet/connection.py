"""A fleet hub over HTTP: requests on connections that are kept, in threads, and the stream of commands."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import ssl
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from urllib.parse import quote, urlencode

import requests
from pydantic import BaseModel, ValidationError

from dimos_streams import clock
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.client.event_stream.sse_parser import SseEvent
from dimos_streams.client.http_session import CuttableSession, Tls, why
from dimos_streams.client.iterators import closing
from dimos_streams.client.sse_client import SseClient, SseError
from dimos_streams.common.http.bearer import bearer_headers
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.threads import in_executor, in_own_thread
from dimos_streams.fleet.batches import Position
from dimos_streams.fleet.commands import Answer, Command, Hello
from dimos_streams.fleet.protocol import COMMANDS_SILENCE_S, StreamId
from dimos_streams.fleet.reports import Reported, RobotReport

M = TypeVar("M", bound=BaseModel)

_TIMEOUT_S = (5.0, 20.0)
_KEEP_S = 3.0
"""Time, in seconds, after which an unused connection may be found closed by the other side."""
_HUNG_UP = (BrokenPipeError, ConnectionAbortedError, ConnectionResetError, ssl.SSLEOFError)
_MAX_TEXT = 500
_MAX_RETRY_AFTER_S = 60.0

_log = LimitedLog(logging.getLogger(__name__), period_s=60.0)


class HubConnection:
    """A ``HubRequests`` over HTTP. Use from one loop; close it when done."""

    def __init__(self, settings: HubLinkSettings, *, rng: random.Random, threads: Executor | None = None) -> None:
        """Requests run in ``threads``, by default two of its own: one for events, one for all else."""
        self._settings = settings
        self._base = f"{settings.url}/fleet/robots/{quote(settings.robot, safe='')}"
        self._tls = Tls(**settings.tls_files())
        self._random = rng
        self._process = secrets.token_urlsafe(16)
        self._own_threads = threads is None
        self._threads = threads or ThreadPoolExecutor(2, thread_name_prefix="hub")
        self._events, self._others = _KeptConnection(self._tls), _KeptConnection(self._tls)
        self._closed = False
        self._reading: asyncio.Task[str | None] | None = None
        """The reading of the token that was begun last."""

    async def position(self, journal_id: str) -> Position:
        """See ``HubRequests``."""
        path = f"/position?{urlencode({'journal': journal_id})}"
        return self._read(Position, await self._request(self._events, "GET", path))

    async def ship(self, batch: bytes) -> Position:
        """See ``HubRequests``."""
        return self._read(Position, await self._request(self._events, "POST", "/batches", batch))

    async def report(self, report: RobotReport) -> Reported:
        """See ``HubRequests``."""
        body = report.model_dump_json().encode()
        return self._read(Reported, await self._request(self._others, "POST", "/reports", body))

    async def answer(self, answer: Answer) -> None:
        """See ``HubRequests``."""
        await self._request(self._others, "POST", "/answers", answer.model_dump_json().encode())

    async def commands(self) -> AsyncGenerator[Hello | Command, None]:
        """See ``HubRequests``."""
        lost, found = ["it ended"], False

        def on_loss(problem: str) -> None:
            lost.append(problem)
            client.request_stop()  # whoever asks again must know when

        stream = secrets.token_urlsafe(16)
        try:
            headers = await self._headers()
        except OSError as error:
            raise HubUnreachableError(f"it can't be reached: {_why(error)}") from error
        client = SseClient(
            f"{self._base}/commands?{urlencode({'stream': stream, 'process': self._process})}",
            rng=self._random,
            headers=headers,
            ping_s=COMMANDS_SILENCE_S / 2.5,
            on_loss=on_loss,
            tls=self._tls,
        )
        try:
            async with closing(client.events(capacity=64)) as events:
                async for event in events:
                    found = True
                    message = _message(event, stream)
                    if message is not None:
                        yield message
        except SseError as error:
            raise self._refusal(error.status, error.body) from error
        what = "its stream of commands" if found else "it can't be reached"  # which all others say, too
        raise HubUnreachableError(f"{what}: {lost[-1]}")

    def close(self) -> None:
        """Cut what is under way. Twice is fine."""
        self._closed = True
        for line in (self._events, self._others):
            line.cut()
        if self._own_threads:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _headers(self) -> dict[str, str]:
        """The robot's token, if it has one. Whatever its file is on may hang, and must hold up no stop meanwhile, nor
        the end of the process; all requests wait for one thread that reads it, however often they are given up.
        Raises ``UserError``, and ``OSError`` if there is no thread to read it."""
        if self._settings.token_file is None:
            return {}
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(in_own_thread(self._settings.token))
        return bearer_headers(await asyncio.shield(self._reading))

    async def _request(self, line: _KeptConnection, method: str, path: str, body: bytes | None = None) -> bytes:
        if self._closed:
            raise HubUnreachableError("the link is closed")
        async with line.turn:
            try:
                headers = await self._headers()
                if body is not None:
                    headers["Content-Type"] = "application/json"
                work = partial(line.request, method, self._base + path, body, headers)
                response = await in_executor(self._threads, work)
            except asyncio.CancelledError:
                line.abandon()
                raise
            except (requests.RequestException, OSError) as error:
                raise HubUnreachableError(f"it can't be reached: {_why(error)}{self._about_cert(error)}") from error
        if 200 <= response.status_code < 300:
            return response.content
        raise self._refusal(response.status_code, response.content, response.headers.get("Retry-After", ""))

    def _about_cert(self, error: Exception) -> str:
        """A hint that the robot's certificate may be missing, if a peer has ended a TLS connection: many don't say
        that this is why. The names of the robot's own files if one of them can't be used, of which the error says
        none. Empty for other errors."""
        if not self._base.startswith("https:"):
            return ""
        if any(_is_of_own_files(inner) for inner in _chain(error)):
            named = ", ".join(f"`{name}` {file}" for name, file in self._settings.tls_files().items())
            return f"; it is in the robot's own files ({named})"
        if not any(isinstance(inner, _HUNG_UP) for inner in _chain(error)):
            return ""
        cert = "not given" if self._tls.cert is None else str(self._tls.cert)
        return f"; where robots need a certificate, this may be why: `cert` is {cert}"

    def _refusal(self, status: int, body: bytes, retry_after: str = "") -> HubUnreachableError | HubRefusalError:
        """The error for an answer that is not a success."""
        try:
            problem = parse_json(body)
        except ValueError:
            problem = None
        if not isinstance(problem, dict):
            problem = {}
        said = problem.get("detail")
        text = said[:_MAX_TEXT] if isinstance(said, str) else f"HTTP {status} from what seems to be no hub"
        if status == 429 or status >= 500:
            return HubUnreachableError(text, _seconds(retry_after))
        kind = str(problem.get("type", "")).rpartition(":")[2]
        offset = problem.get("offset", problem.get("acknowledged"))
        return HubRefusalError(f"it refuses: {text}", kind, offset if isinstance(offset, int) else None)

    def _read(self, model: type[M], content: bytes) -> M:
        try:
            return model.model_validate_json(content)
        except ValidationError as error:
            raise HubRefusalError(f"its answer is none of a hub: {first_problem(error, 'it')}") from error


def _message(event: SseEvent, stream: StreamId) -> Hello | Command | None:
    """The message of an event, None if there is none for this stream. Raises ``HubRefusalError``."""
    kinds: dict[str, type[Hello] | type[Command]] = {"hello": Hello, "command": Command}
    model = kinds.get(event.type)
    try:
        message = None if model is None else model.model_validate_json(event.data)
    except ValidationError as error:
        if model is Hello:
            raise HubRefusalError(f"its greeting is none of a hub: {first_problem(error, 'it')}") from error
        _log.warning("a command of the hub is none, and nobody answers it: %s", first_problem(error, "it"))
        return None
    if isinstance(message, Command) and message.stream != stream:
        _log.warning(
            "command %d of the hub came on a later stream than its own, and is not carried out: somebody in between"
            " has kept it back",
            message.id,
        )
        return None
    return message


class _KeptConnection:
    """A connection that is kept between requests. ``turn`` is the loop's, all else may be used by threads."""

    def __init__(self, tls: Tls) -> None:
        self.turn = asyncio.Lock()
        self._tls = tls
        self._guard = threading.Lock()
        self._idle: CuttableSession | None = None
        self._busy: CuttableSession | None = None
        """The session of the request that somebody waits for; its thread closes or keeps it."""
        self._used_at = 0.0
        self._is_cut = False

    def request(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> requests.Response:
        """Send a request. Blocks. Raises ``requests.RequestException`` and ``OSError``; the next one connects
        anew."""
        session = self._begin()
        answered = False
        try:
            response = session.request(
                method, url, data=body, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False
            )
            answered = True
        finally:
            self._end(session, keep=answered)
        return response

    def abandon(self) -> None:
        """End what is under way, which nobody waits for any more. The next request connects anew."""
        with self._guard:
            busy, self._busy = self._busy, None
            self._close_idle()
        if busy is not None:
            busy.cut()

    def cut(self) -> None:
        """End what is under way, and take nothing more. From any thread; twice is fine."""
        with self._guard:
            self._is_cut = True
        self.abandon()

    def _begin(self) -> CuttableSession:
        with self._guard:
            if self._is_cut:
                raise ConnectionAbortedError("the link is closed")
            if clock.monotonic() - self._used_at > _KEEP_S:
                self._close_idle()
            self._busy, self._idle = self._idle or CuttableSession(self._tls), None
            return self._busy

    def _end(self, session: CuttableSession, *, keep: bool) -> None:
        with self._guard:
            if self._busy is session:
                self._busy = None
                if keep:
                    self._idle, self._used_at = session, clock.monotonic()
                    return
        session.close()

    def _close_idle(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None


def _why(error: Exception) -> str:
    """The reason for an error. What TLS says is it, as it is no matter of the network."""
    return why(next((inner for inner in _chain(error) if isinstance(inner, ssl.SSLError)), error))


def _is_of_own_files(error: BaseException) -> bool:
    """Return whether OpenSSL could not use a file, rather than what came over a connection."""
    return type(error) is ssl.SSLError and (error.library == "X509" or error.reason is None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _seconds(text: str) -> float:
    return min(float(text), _MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() else 0.0
