"""The lanes of clients' commands: what stops has room of its own, which slow commands can't fill."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from dimos_streams.bridge.monitor.places import FairPlaces
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.commands import Abort, Cancel, Command, Decide, Pause, Resume, Say, Step, Undo

AT_A_TIME = 16
"""Maximum number of commands of one client, in each lane, that are carried out at a time."""
OF_ALL = 32
"""Maximum number of commands of all clients together, in each lane, that are carried out at a time: an agent takes as
many within the time in which a call has to begin, and orders by other ways find room."""

_STOPPING = (Pause, Resume, Step, Abort, Cancel)
"""Commands that stop, or let go on: a ``resume`` must not come after a ``pause`` that was sent later."""
_ENDING = (Pause, Abort, Cancel)
"""Commands that never come too late."""
_BEGINNING = (Say, Undo, Decide)
"""Commands that begin something, which nobody means any more who has aborted since."""


def _stops(command: Command) -> bool:
    """Return whether a command has its place in the lane of those that stop."""
    return isinstance(command, _STOPPING)


class SharedLanes:
    """The lanes that all clients share. Use from the loop only."""

    def __init__(self, outdated_s: Callable[[], float] = lambda: 0.0) -> None:
        """``outdated_s`` is what ``RequestOrder`` takes."""
        self._stopping, self._others = FairPlaces(OF_ALL), FairPlaces(OF_ALL)
        self.outdated_s = outdated_s

    def lane(self, command: Command) -> FairPlaces:
        """The lane of a command."""
        return self._stopping if _stops(command) else self._others


class Lanes:
    """The lanes of one client. Use from the loop only."""

    def __init__(self) -> None:
        self._stopping, self._others = asyncio.Semaphore(AT_A_TIME), asyncio.Semaphore(AT_A_TIME)
        self._aborts = 0
        self._reading = asyncio.Lock()
        """Held by the command that waits until all is read that came while this process stood still: those behind it
        keep their order, whatever timers do."""
        self._left = asyncio.Event()

    def leave(self) -> None:
        """Note that the client has left."""
        self._left.set()

    @contextlib.asynccontextmanager
    async def place(self, command: Command, shared: SharedLanes) -> AsyncIterator[None]:
        """Wait for a command's turn in its lane, and among other clients' commands, and hold its place there.

        Raises ``SkillError`` if an ``abort`` has overtaken a command that would begin something, and for a command
        whose client left while this process stood still: it would come when nobody expects it any more.
        """
        self._aborts += isinstance(command, Abort)
        aborts = self._aborts
        async with self._reading:  # all wait, or a `resume` would come after a later `pause`
            read_s = shared.outdated_s()
            if read_s and await ends_within(read_s, self._left.wait()) and not isinstance(command, _ENDING):
                raise SkillError(f"{command.command!r} is not carried out: its client left meanwhile")
        own = self._stopping if _stops(command) else self._others
        async with own, shared.lane(command).place(self):
            if isinstance(command, _BEGINNING) and self._aborts > aborts:
                raise SkillError(f"{command.command!r} is not carried out: an abort came while it waited; ask anew")
            yield
