"""The reasons for which an agent holds its robot still."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from dimos_streams.agent.control.control import Control
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.readable.shortening import shortened

_MAX_SHOWN = 200
"""Maximum number of characters of a pause's own reason: it is sent with every message of the hold."""


class HoldReasons:
    """Knows why the robot has to be still: an abort, a stop or a pause."""

    def __init__(self, control: Control, aborting: Callable[[], bool]) -> None:
        """``aborting`` returns whether an abort is under way."""
        self._control = control
        self._aborting = aborting
        self.changed: Listeners[[]] = Listeners()
        """Called when a stop begins or ends."""
        self._stops = 0
        """The number of stops that are being carried out."""

    def why(self) -> str:
        """The reason the robot has to be still; empty if it does not have to."""
        if self._aborting():
            return "an abort is under way"
        if self._stops:
            return "the operator has said stop"
        if not self._control.paused:
            return ""
        ordered = self._control.paused_for
        return f"the agent is paused{f': {shortened(ordered, _MAX_SHOWN)}' if ordered else ''}"

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """Count a stop as being carried out during the block."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, stops: int) -> None:
        self._stops += stops
        self.changed.notify()
