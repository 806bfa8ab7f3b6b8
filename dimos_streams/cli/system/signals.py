"""Ctrl-C, SIGTERM and a closed terminal: they end a command at once or, if something has to be ended, in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dimos_streams.cli.exit_codes import INTERRUPTED

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int], bool | None]
_handlers: list[Handler] = []


class Interrupted(Exception):
    """The end of a command that was asked to end by a signal, and has cleaned up."""

    def __init__(self, number: int) -> None:
        self.exit_code = INTERRUPTED + number
        super().__init__(f"ended by {signal.Signals(number).name}")


def install() -> None:
    """Have signals end the process at once and silently from now on, unless ``handle_with`` says otherwise."""
    for number in _ENDING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _on_signal)


@contextmanager
def handle_with(handler: Handler) -> Iterator[None]:
    """Send signals within the context to ``handler``, between two instructions of the main thread.

    A handler that returns False leaves the signal to the one around it.
    """
    _handlers.append(handler)
    try:
        yield
    finally:
        _handlers.remove(handler)


@contextmanager
def unwinding() -> Iterator[None]:
    """Have signals end the block as an error would, so that what it has begun to write is taken away."""

    def end(number: int) -> None:
        raise Interrupted(number)

    with handle_with(end):
        yield


def deliver(number: int) -> None:
    """Do what the arrival of a signal does."""
    for handler in reversed(_handlers):
        if handler(number) is not False:
            return
    os._exit(INTERRUPTED + number)


def _on_signal(number: int, frame: FrameType | None) -> None:
    deliver(number)
