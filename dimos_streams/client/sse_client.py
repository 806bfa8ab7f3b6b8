"""A client of server-sent events that reconnects, resumes, and stops at once."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.client.backoff import Backoff
from dimos_streams.client.event_stream.chunked import ChunkedDecoder, content_size
from dimos_streams.client.event_stream.handoff import Handoff
from dimos_streams.client.event_stream.loop_reader import LoopReader
from dimos_streams.client.event_stream.sse_http import (
    MAX_WAIT_S,
    PassingError,
    SseError,
    check_answer,
    request_headers,
)
from dimos_streams.client.event_stream.sse_parser import SseEvent, SseParser
from dimos_streams.client.event_stream.sse_statistics import SseStatistics
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.tasks import ends_within

if TYPE_CHECKING:
    import requests

    from dimos_streams.client.http_session import CuttableSession, Tls

__all__ = ["OnEnd", "OnEvent", "SseClient", "SseError", "SseStatistics"]

_PIECE = 65536
_STEADY_S = 1.0
"""The age, in seconds, from which a connection counts as a success whatever it has brought."""
_END_BOUND_S = 1.0
"""The most seconds that whoever stops reading on a loop waits for the thread."""

OnEvent = Callable[[SseEvent], None]
OnEnd = Callable[[Exception | None], None]
_Deliver = Callable[[list[SseEvent]], None]


class SseClient:
    """Reads an event stream for ever: reconnects with back-off and resumes by Last-Event-ID.

    Use ``start(callback)`` and ``stop()``, or iterate ``events()``. A client runs once. A thread of its own connects
    and also reads, unless ``events()`` is used: then the loop reads the socket itself where possible. A connection on
    which nothing arrives for 2.5 times ``ping_s`` counts as dead; servers send comments to keep it alive. After
    status 429 and 5xx it tries again (``Retry-After`` is honoured); any other status except 200 is an ``SseError``,
    and so is another content type. Redirects are not followed: the headers may hold a secret that is meant for this
    server.
    """

    def __init__(
        self,
        url: str,
        *,
        rng: random.Random | None = None,
        headers: Mapping[str, str] | None = None,
        last_event_id: str = "",
        ping_s: float = 15.0,
        connect_timeout_s: float = 5.0,
        first_wait_s: float = 0.1,
        longest_wait_s: float = 5.0,
        max_event_bytes: int = 1 << 20,
        tls: Tls | None = None,
        on_connect: Callable[[], None] = lambda: None,
        on_loss: Callable[[str], None] = lambda problem: None,
    ) -> None:
        """``on_connect`` and ``on_loss`` are called on the client's thread: when there is a connection,
        and when a connection or an attempt has failed. ``on_loss`` may ``request_stop``; it is called on the loop if
        ``events`` gets no thread."""
        self.url = url
        self.error: Exception | None = None
        """The reason why the thread gave up; None while it runs and after ``stop``."""
        self.last_event_id = last_event_id
        """The newest id, of an event that was handed over or without an event; a new client resumes with it."""
        self._tls = tls
        self._on_connect, self._on_loss = on_connect, on_loss
        self._headers = dict(headers or {})
        self._timeout = (connect_timeout_s, 2.5 * ping_s)
        self._backoff = Backoff(rng, initial_s=first_wait_s, maximum_s=longest_wait_s)
        self._max_event_bytes = max_event_bytes
        self._log = LimitedLog(logging.getLogger(__name__))
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._session: CuttableSession | None = None
        self._thread: threading.Thread | None = None
        self._handoff: Handoff[SseEvent] | None = None
        self._reader: LoopReader | None = None
        self._counts = SseStatistics()
        self._connected_at = math.inf
        """The time since which there is a connection; infinite if there is none."""

    def start(self, on_event: OnEvent, on_end: OnEnd | None = None) -> None:
        """Begin to read. Both callbacks are called on the client's thread, ``on_end`` once, as its last act; without
        it the log says of an ``SseError`` that nothing more comes.

        The reader waits for ``on_event``, and so, in the end, does the server. A second start is a ``RuntimeError``,
        and one without a thread for it an ``OSError``.
        """
        self._start(partial(self._each, on_event), on_end)

    def _start(self, deliver: _Deliver, on_end: OnEnd | None) -> None:
        with self._guard:
            if self._thread is not None:
                raise RuntimeError(f"the client of {self.url} was started before")
            run = partial(self._run, deliver, on_end)
            thread = threading.Thread(target=run, name=f"sse {self.url}", daemon=True)
            begin_thread(thread)
            self._thread = thread

    def request_stop(self) -> None:
        """Ask the thread to end. Returns at once; from any thread, at any moment, as often as you like."""
        with self._guard:
            self._stopping.set()
            if self._session is not None:
                self._session.cut()

    def stop(self, timeout_s: float | None = None) -> bool:
        """End the thread and wait for it. False if ``timeout_s`` was not enough (``on_event`` blocks).

        No event is handed over after it returned True.
        """
        self.request_stop()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    async def events(self, *, capacity: int = 1024) -> AsyncGenerator[SseEvent, None]:
        """Start, and yield each event; close the iterator to stop. At most ``capacity``, one batch and the
        events of one read are in memory.

        Raises ``SseError`` when trying again makes no sense.
        """
        handoff: Handoff[SseEvent] = Handoff(asyncio.get_running_loop(), capacity=capacity)
        self._handoff = handoff
        if not await self._begun(handoff):
            return
        try:
            while batch := await handoff.batch():
                for event in batch:
                    yield event
        finally:
            self.request_stop()
            if self._reader is not None:
                self._reader.stop()  # a loop that is ending might never see the cut socket
            handoff.close()
            # Nothing cuts the look-up of a host's name: the thread ends alone then.
            if await ends_within(_END_BOUND_S, handoff.ended()):
                self.stop()

    async def _begun(self, handoff: Handoff[SseEvent]) -> bool:
        """Start the thread, and try again while the system has none; return False if the client was stopped
        meanwhile."""
        while True:
            try:
                self._start(handoff.put, handoff.end)
                return True
            except OSError as error:
                wait_s = self._pause_s(error.strerror or str(error))
            if wait_s is None:
                return False
            await asyncio.sleep(wait_s)

    def statistics(self) -> SseStatistics:
        """The counters of the client."""
        return replace(self._counts)

    def _run(self, deliver: _Deliver, on_end: OnEnd | None) -> None:
        try:
            while not self._stopping.is_set():
                self._connect_once(deliver)
        except Exception as error:
            self.error = error
            if not isinstance(error, SseError):
                logging.getLogger(__name__).exception("the client of %s has a bug and ends", self.url)
            elif on_end is None:
                logging.getLogger(__name__).error("%s; it is read no more", error)
        finally:
            if on_end is not None:
                on_end(self.error)

    def _connect_once(self, deliver: _Deliver) -> None:
        """Make one connection, from the attempt to its end and the wait that follows."""
        import requests
        import urllib3

        from dimos_streams.client.http_session import why

        retry_after_s, self._connected_at = 0.0, math.inf
        try:
            self._read_connection(deliver)
            problem = "the server ended the stream"
        except PassingError as error:
            problem, retry_after_s = str(error), error.retry_after_s
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            problem = why(error)
        if clock.monotonic() - self._connected_at >= _STEADY_S:
            self._backoff.reset()
        if not self._stopping.is_set() and (wait_s := self._pause_s(problem, retry_after_s)) is not None:
            self._stopping.wait(wait_s)

    def _pause_s(self, problem: str, retry_after_s: float = 0.0) -> float | None:
        """Note that an attempt has failed; return the seconds until the next one, None if there is to be none."""
        self._counts.failures += 1
        self._counts.last_failure = problem
        self._on_loss(problem)
        if self._stopping.is_set():
            return None
        wait_s = self._backoff.next(retry_after_s)
        self._log.warning("event stream %s: %s; again in %.1f s", self.url, problem, wait_s)
        return wait_s

    def _read_connection(self, deliver: _Deliver) -> None:
        from dimos_streams.client.http_session import CuttableSession

        with CuttableSession(self._tls) as session:
            with self._guard:
                if self._stopping.is_set():
                    return
                self._session = session
            try:
                with session.get(
                    self.url,
                    headers={**request_headers(self.last_event_id), **self._headers},
                    stream=True,
                    timeout=self._timeout,
                    allow_redirects=False,
                ) as response:
                    check_answer(self.url, response)
                    self._counts.connections += 1
                    self._connected_at = clock.monotonic()
                    self._on_connect()
                    if self._handoff is not None and (taken_over := session.take_over(response)) is not None:
                        self._read_on_loop(self._handoff, *taken_over)
                    else:
                        self._read(response, deliver)
            finally:
                with self._guard:
                    self._session = None

    def _read(self, response: requests.Response, deliver: _Deliver) -> None:
        parser = self._parser()
        while not self._stopping.is_set():
            piece = response.raw.read1(_PIECE)
            if not piece:
                return
            events = self._parsed(parser, piece)
            # Handing over is the last thing before the next read: the woken thread then needs the GIL.
            if events and not self._stopping.is_set():
                deliver(events)
            if not self._stopping.is_set():
                self.last_event_id = parser.last_event_id

    def _read_on_loop(self, handoff: Handoff[SseEvent], sock: socket.socket, first: bytes) -> None:
        """Let the loop that takes the events also read them; this thread waits until the connection ends."""
        parser, decoder = self._parser(), ChunkedDecoder()
        chunks: deque[bytes] = deque()

        def on_piece(piece: bytes) -> bool:
            is_between = decoder.is_between and not chunks and not self._stopping.is_set()
            if is_between and (alone := parser.alone(piece)) is not None:
                self._note(1, content_size(piece), alone.id)
                hand_over([alone])
                return True
            chunks.extend(decoder.feed(piece))
            while chunks and not self._stopping.is_set():
                if not hand_over(self._parsed(parser, chunks.popleft())):
                    return True
            if decoder.error is not None:
                raise decoder.error
            return not (decoder.ended or self._stopping.is_set())

        def hand_over(events: list[SseEvent]) -> bool:
            """Hand events over; return False, and read no more for now, if there is no room for others."""
            has_room = not events or handoff.put_here(events)
            self.last_event_id = parser.last_event_id
            if not has_room:
                reader.pause()
            return has_room

        reader = LoopReader(handoff.loop, sock, on_piece, self._timeout[1])
        handoff.on_room = reader.go_on
        self._reader = reader
        if not self._stopping.is_set():  # if it is set later, whoever sets it sees the reader
            reader.run(first)

    def _parser(self) -> SseParser:
        return SseParser(max_event_bytes=self._max_event_bytes, last_event_id=self.last_event_id)

    def _parsed(self, parser: SseParser, piece: bytes) -> list[SseEvent]:
        """Parse a piece: return the events that it completes, and note what it shows besides."""
        events = parser.feed(piece)
        self._note(len(events), len(piece), parser.last_event_id)
        if parser.retry_ms is not None:
            self._backoff.initial_s = min(parser.retry_ms / 1000, MAX_WAIT_S)
        if parser.oversized:
            self._counts.malformed += parser.oversized
            parser.oversized = 0
            self._log.warning("event stream %s: an event exceeds %d bytes", self.url, self._max_event_bytes)
        return events

    def _note(self, events: int, size: int, last_id: str) -> None:
        """Count what has come. A connection that leads on works. One that only greets may be of a server that ends
        each at once, and is not to be asked without end: it has to last for a while."""
        self._counts.events += events
        self._counts.bytes += size
        if last_id != self.last_event_id:
            self._backoff.reset()

    def _each(self, on_event: OnEvent, events: list[SseEvent]) -> None:
        for event in events:
            if self._stopping.is_set():
                return
            try:
                on_event(event)
            except Exception:
                self._log.exception("event stream %s: the callback failed", self.url)
            self.last_event_id = event.id
