"""The replacement of a process by another, which imports its code and is checked while the old one goes on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.liveness import BEAT_S
from dimos_streams.runtime.processes.process import SupervisedProcess
from dimos_streams.runtime.processes.reports import Report

AnswerT = TypeVar("AnswerT")

_PREPARES_WITHIN_S = 30.0
"""Maximum time of a preparation, in seconds; what it waits for a processor does not count."""


@dataclass
class Succession:
    """The successor of one process: prepared beside it, then in its place and begun, or given up on the way."""

    successor: SupervisedProcess | None = None
    """The process that prepares itself, until it has the place."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the process is replaced, and while the last one ends."""
    _prepared: asyncio.Future[str | None] | None = None
    """Done when the successor is prepared (empty), can't be (with the reason), or imports what is old code by now
    (None)."""
    _settled: asyncio.Future[str] | None = None
    """Done when a successor that has taken the place is ready (empty), or never will be (with the reason)."""

    @property
    def is_settling(self) -> bool:
        """True while a successor has the place and is not ready yet."""
        return self._settled is not None and not self._settled.done()

    async def prepare(self, successor: SupervisedProcess, label: str) -> bool:
        """Have a successor of the process of that label import its code and wait; return False if it was outdated on
        the way, so that another one is to be prepared. Raises ``UserError`` with what is broken. In either case the
        successor has ended."""
        prepared = self._prepared = asyncio.get_running_loop().create_future()
        self.successor = successor
        try:
            await successor.start()
            began = clock.monotonic()
            while not prepared.done():
                await asyncio.wait([prepared], timeout=BEAT_S)
                if not prepared.done() and clock.monotonic() - began - successor.waited_s > _PREPARES_WITHIN_S:
                    raise TimeoutError
            if why := prepared.result():
                raise UserError(why)
            if why is None:
                self._drop(successor)
            return why is not None
        except BaseException as error:
            self._drop(successor)
            if isinstance(error, TimeoutError):
                why = f"the code of process {label!r} was not imported within {_PREPARES_WITHIN_S:g} s"
                raise UserError(why) from error
            if isinstance(error, OSError):
                raise ModuleFailedError(f"process {label!r} could not be started: {error!r}") from error
            raise

    def _drop(self, successor: SupervisedProcess) -> None:
        self.successor = None
        successor.kill()

    def outdate(self) -> bool:
        """Note that newer code was written than what a successor imports; return whether there is one that does."""
        imports = self.successor is not None and self._prepared is not None and not self._prepared.done()
        if imports:
            _answer(self._prepared, None)
        return imports

    def hear(self, report: Report) -> None:
        """Note what the successor reports of its preparation."""
        if report["kind"] == "prepared":
            _answer(self._prepared, "")
        elif report["kind"] == "failed":
            _answer(self._prepared, report["text"])

    def ended(self, why: str) -> None:
        """Note that the successor has ended before it was prepared."""
        _answer(self._prepared, why)

    def take(self) -> SupervisedProcess | None:
        """Return the prepared successor, which has the place from now on."""
        taken, self.successor = self.successor, None
        return taken

    def begin(self) -> asyncio.Future[str]:
        """Return the future that is done when the successor, which has the place, has settled."""
        self._settled = asyncio.get_running_loop().create_future()
        return self._settled

    def settle(self, why_not: str = "") -> None:
        """Note that the successor is ready, or why it never will be."""
        _answer(self._settled, why_not)

    def give_up(self, why: str) -> None:
        """Have a replacement that is under way end, if there is one: its successor begins no more."""
        self.ended(why)
        self.settle(why)


def _answer(future: asyncio.Future[AnswerT] | None, why_not: AnswerT) -> None:
    if future is not None and not future.done():
        future.set_result(why_not)
