"""The lanes of clients' commands: what stops has room of its own, which slow commands can't fill."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from dimos_streams.bridge.monitor.places import FairPlaces
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import SkillError
from dimos_streams.operator.agents import may_mean_one
from dimos_streams.operator.messages.commands import Abort, Cancel, Command, Decide, Pause, Resume, Say, Step, Undo

AT_A_TIME = 16
"""Maximum number of commands of one client, in each lane, that are carried out at a time."""
OF_ALL = 32
"""Maximum number of commands of all clients together, in each lane, that are carried out at a time: an agent takes as
many within the time in which a call has to begin, and orders by other ways find room."""
_PAUSE_S = 0.01
"""Time, in seconds, between what is done at once for a command and the beginning of the next."""

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
        self._beginning = asyncio.Lock()

    async def begin(self, command: Command) -> None:
        """Wait until a command may begin: those that don't stop leave others some time between any two. To check what
        one asks for may take a tenth of a second, and orders by other ways wait for no crowd of them."""
        if not _stops(command):
            await self._beginning.acquire()
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_later, _PAUSE_S, self._beginning.release)  # once this one has been checked

    def lane(self, command: Command) -> FairPlaces:
        """The lane of a command."""
        return self._stopping if _stops(command) else self._others


@dataclass(eq=False, slots=True)
class _WaitingCommand:
    """A command that waits for its turn and would begin something."""

    agent: str
    """The agent as its client names it."""
    is_overtaken: bool = False
    """True if an ``abort`` of its agent has come since."""


class Lanes:
    """The lanes of one client. Use from the loop only."""

    def __init__(self) -> None:
        self._stopping, self._others = asyncio.Semaphore(AT_A_TIME), asyncio.Semaphore(AT_A_TIME)
        self._waiting: list[_WaitingCommand] = []
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

        Raises ``SkillError`` if an ``abort`` of its agent has overtaken a command that would begin something, and for
        a command whose client left while this process stood still: it would come when nobody expects it any more.
        """
        if isinstance(command, Abort):
            self._overtake(command)
        with self._noted(command) as waiting:
            await self._read(command, shared)
            own = self._stopping if _stops(command) else self._others
            async with own, shared.lane(command).place(self):
                await shared.begin(command)
                if waiting is not None and waiting.is_overtaken:
                    raise SkillError(
                        f"{command.command!r} is not carried out: an abort came while it waited; ask anew"
                    )
                yield

    @contextlib.contextmanager
    def _noted(self, command: Command) -> Iterator[_WaitingCommand | None]:
        """Note a command for the aborts that come while it waits, if it would begin something."""
        if not isinstance(command, _BEGINNING):
            yield None
            return
        waiting = _WaitingCommand(command.agent)
        self._waiting.append(waiting)
        try:
            yield waiting
        finally:
            self._waiting.remove(waiting)

    def _overtake(self, abort: Abort) -> None:
        for waiting in self._waiting:
            waiting.is_overtaken |= may_mean_one(abort.agent, waiting.agent)

    async def _read(self, command: Command, shared: SharedLanes) -> None:
        """Wait until all is read that came while this process stood still. Raises ``SkillError``, see ``place``."""
        async with self._reading:  # all wait, or a `resume` would come after a later `pause`
            read_s = shared.outdated_s()
            if read_s and await ends_within(read_s, self._left.wait()) and not isinstance(command, _ENDING):
                raise SkillError(f"{command.command!r} is not carried out: its client left meanwhile")
