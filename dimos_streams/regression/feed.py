"""Feeds a log into modules in virtual time, so that they meet each input at the instant at which it was recorded.

The loop asks the feed before it jumps. Where timers and inputs are due at the same instant, the timers come first: in
the recorded run they woke at once, and a message takes another turn of the loop. Inputs of one instant are published
in one go, as far as the log has no output of the modules between them; what follows it, or a module's start or stop,
waits until they have settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dimos_streams import clock
from dimos_streams.clock import END_BOUND_S, VirtualTimeLoop
from dimos_streams.common.process.bounded_run import run_bounded
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import CHANNEL

T = TypeVar("T")


class ReplayLoop(VirtualTimeLoop):
    """Virtual time that stops at each input of a feed."""

    feed: Feed | None = None

    def _advance(self, timeout: float | None) -> None:
        feed = self.feed
        if feed is None or feed.done.done():
            super()._advance(timeout)
            return
        timer_ns = None if timeout is None else self._due_ns(timeout)
        due_ns = (feed.due_utime - self._start_utime) * 1000
        if timer_ns is None or due_ns < timer_ns:
            self._move_to(max(self._now_ns, due_ns))
            feed.give()
        else:
            self._move_to(timer_ns)


class Feed:
    """Publishes the inputs of a log; ``is_input`` chooses them, and sees every event of the log once and in order."""

    def __init__(
        self,
        events: Iterator[LogEvent],
        is_input: Callable[[LogEvent], bool | None],
        publish: Callable[[LogEvent], bool],
    ) -> None:
        """Make the feed. ``is_input`` gives True for an input, None for an output of the modules, False for the
        rest; ``publish`` returns whether the next one waits until the modules have settled."""
        self._events = events
        self._is_input = is_input
        self._publish = publish
        self._next: LogEvent | None = None
        self._last_utime = clock.utime()  # a log's clock may have shown times before 1970
        self._settle_first = False
        self.due_utime = self._last_utime
        """The time at which the next input is due; at the end of the log, that of its last event."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that is done when the time of the log's last event has come."""
        self._find_next()

    def is_over(self, utime: int) -> bool:
        """Return whether the last of the log's time has come: what the modules say from now on, it may lack."""
        return self._next is None and utime >= self.due_utime

    def give(self) -> None:
        """Publish the input that is due, with all that came with it."""
        while True:
            event, due = self._next, self.due_utime
            if event is None:
                self.done.set_result(None)
                return
            settles = self._publish(event)
            self._find_next()
            if settles or self._next is None or self.due_utime != due or self._settle_first:
                return

    def _find_next(self) -> None:
        last_output: int | None = None
        for event in self._events:
            if event.channel != CHANNEL:  # the time of metadata says nothing about what was recorded
                self._last_utime = max(self._last_utime, event.utime)
            kind = self._is_input(event)
            if kind is None:
                last_output = event.utime
            elif kind:
                # A log's clock may have been set back; time goes on all the same.
                self._next, self.due_utime = event, max(event.utime, self.due_utime)
                self._settle_first = last_output is not None and last_output >= self.due_utime
                return
        self._next, self.due_utime = None, max(self._last_utime, self.due_utime)


def run_with_feed(main: Callable[[ReplayLoop], Any], start_utime: int) -> Any:
    """Run the coroutine that ``main`` makes, in virtual time that begins at ``start_utime``."""
    loop = ReplayLoop(start_utime)
    return run_bounded(main(loop), lambda: loop, END_BOUND_S)
