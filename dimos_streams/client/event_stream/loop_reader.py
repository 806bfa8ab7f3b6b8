"""Reads a connection on an event loop instead of in a thread.

A thread that reads wakes up first, and then the loop: 0.1 ms for each event that comes alone.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

from dimos_streams import clock

_PIECE = 65536


class LoopReader:
    """The reader of one connection. ``run`` belongs to the thread, all else to the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, on_piece: Callable[[bytes], bool], idle_s: float
    ) -> None:
        """``on_piece`` takes what was read, on the loop, and says whether more is wanted; after a pause it is called
        once with nothing. ``sock`` does not block. A connection on which nothing comes for ``idle_s`` counts as
        dead."""
        self._loop, self._socket, self._on_piece, self._idle_s = loop, sock, on_piece, idle_s
        self._done = threading.Event()
        self._error: Exception | None = None
        self._heard_at = clock.monotonic()
        self._begun = self._paused = False
        self._buffer = memoryview(bytearray(_PIECE))

    def run(self, first: bytes) -> None:
        """Read to the end; ``first`` was read before. Raises ``OSError``, and what ``on_piece`` raises."""
        self._call(self._begin, first)
        while not self._done.wait(self._timeout_s()):
            if not self._paused and clock.monotonic() - self._heard_at >= self._idle_s:
                self._call(self._end, TimeoutError(f"nothing came for {self._idle_s:g} s"))
                self._done.wait()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Read nothing until ``go_on``, and leave it to the connection to hold the other side up."""
        if not self._paused and not self._done.is_set():
            self._paused = True
            self._loop.remove_reader(self._socket)

    def go_on(self) -> None:
        """Read on. Twice is fine."""
        if self._paused and not self._done.is_set():
            self._heard_at, self._paused = clock.monotonic(), False  # in this order: the thread looks at both
            self._loop.add_reader(self._socket, self._read)
            self._receive(b"")

    def _timeout_s(self) -> float:
        return self._idle_s if self._paused else max(0.01, self._heard_at + self._idle_s - clock.monotonic())

    def stop(self) -> None:
        """End it now: ``run`` returns. Twice is fine."""
        self._end(None)

    def _call(self, function: Callable[[Any], None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, argument)
        except RuntimeError:  # the loop is closed: nobody is left to read for
            self._done.set()

    def _begin(self, first: bytes) -> None:
        if self._done.is_set():
            return
        self._begun = True
        self._loop.add_reader(self._socket, self._read)
        self._receive(first)

    def _read(self) -> None:
        try:
            size = self._socket.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if size:
            self._receive(bytes(self._buffer[:size]))
        else:
            self._end(None)

    def _receive(self, piece: bytes) -> None:
        self._heard_at = clock.monotonic()
        try:
            goes_on = self._on_piece(piece)
        except Exception as error:
            self._end(error)
            return
        if not goes_on:
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._done.is_set():
            self._error = error
            if self._begun:  # else the thread may have closed the socket, and will not run
                self._loop.remove_reader(self._socket)
            self._done.set()
