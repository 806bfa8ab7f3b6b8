"""A thread that takes samples from Zenoh and brings them to the loop, all that have come at once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.zenoh.session import start_thread

if TYPE_CHECKING:
    import zenoh

MOST = 8192
"""Maximum number of messages of a subscription that wait for the loop; beyond it the oldest are thrown away."""
KEPT_BYTES = 4 * 1024 * 1024
"""Maximum size of these messages, in bytes; beyond it the oldest are thrown away."""
CHANNEL_CAPACITY = 256
"""Maximum number of samples that wait for the thread. It only ever waits for the interpreter's lock; when this queue
is full, the link is."""

Batch = list[tuple[str, bytes]]


class _Samples(Protocol):
    """A subscriber's channel; it is not the subscriber, which can't be undeclared while somebody waits for it."""

    def recv(self) -> zenoh.Sample: ...
    def try_recv(self) -> zenoh.Sample | None: ...


class SampleReader:
    """A reader of one subscriber's samples, as pairs of key and payload.

    Zenoh would call Python from its own threads for each sample, and each call would wait for the interpreter's lock;
    this thread gets the lock once for all that has come. ``deliver`` is called on the loop, with whether some were
    thrown away.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[Batch, bool], None], name: str) -> None:
        self._loop = loop
        self._deliver = deliver
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._missed = self._woken = False
        self._ended = False
        self._name = name
        self._thread: threading.Thread | None = None

    def start(self, samples: _Samples) -> None:
        """Begin to read; the thread ends by itself when the subscriber is undeclared. Raises ``OSError`` if there is
        none."""
        self._thread = start_thread(lambda: self._run(samples), self._name)

    def end(self) -> None:
        """Deliver nothing more. Ending twice is fine."""
        self._ended = True
        with self._lock:
            self._waiting.clear()
            self._bytes = 0

    def join(self) -> None:
        """Wait for the end of its thread, once the subscriber is undeclared."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, samples: _Samples) -> None:
        import zenoh

        while not self._ended:
            try:
                sample: zenoh.Sample | None = samples.recv()
                while sample is not None:
                    self._put(str(sample.key_expr), sample.payload)
                    sample = samples.try_recv()
            except zenoh.ZError:  # undeclared, or its session is closed
                return
            self._wake()

    def _put(self, key: str, payload: zenoh.ZBytes) -> None:
        size = len(payload)
        with self._lock:
            if size > MAX_MESSAGE:
                self._missed = True
                return
            self._waiting.append((key, payload.to_bytes()))
            self._bytes += size
            while len(self._waiting) > MOST or (self._bytes > KEPT_BYTES and len(self._waiting) > 1):
                self._bytes -= len(self._waiting.popleft()[1])
                self._missed = True

    def _wake(self) -> None:
        with self._lock:
            if self._woken or self._ended:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:  # the loop has been closed with the bus open
            self._ended = True

    def _hand_over(self) -> None:
        with self._lock:
            batch, missed = list(self._waiting), self._missed
            self._waiting.clear()
            self._bytes, self._missed, self._woken = 0, False, False
        if not self._ended and (batch or missed):
            self._deliver(batch, missed)
