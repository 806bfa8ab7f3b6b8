"""Watches for operators' consoles, and does what follows when the last one goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from dimos_streams.agent.control.control import Control
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.tasks import ends_within

RETURN_BOUND_S = 5.0
"""The time in s for a console that watched the process before to come back."""
_WHY = "no console is connected any more"


class ConsoleWatch:
    """Counts consoles. If the loss of the last one has a consequence, the record says whether one is there: a console
    that goes while the agent's process is dead is lost, too."""

    def __init__(
        self, approvals: ApprovalRegistry, control: Control, emit: Emit, abort: Callable[[str], object]
    ) -> None:
        """``abort`` is called with the reason."""
        self._approvals = approvals
        self._control = control
        self._emit = emit
        self._abort = abort
        self._policy = approvals.on_console_loss
        self._consoles = 0
        self._present: bool | None = None
        """True if a console is there according to the record; None if the record says nothing of it."""
        self._came = asyncio.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count a console as there during the block."""
        self._consoles += 1
        self._came.set()
        self._approvals.console(present=True)
        self._note(present=True)
        try:
            yield
        finally:
            self._consoles -= 1
            if not self._consoles:
                self._lost()

    async def go_on(self, present: bool | None) -> None:
        """Go on from the record of the process before; ``present`` is None if it says nothing of consoles.

        A console that was there has ``RETURN_BOUND_S`` to come back; then it is lost.
        """
        self._present = present if self._present is None else self._present
        if present is False and not self._consoles:
            self._approvals.console(present=False)
        if present and not await ends_within(RETURN_BOUND_S, self._came.wait()):
            self._lost()

    def _lost(self) -> None:
        self._approvals.console(present=False)
        if self._policy == "hold":
            self._control.pause(_WHY)
        elif self._policy == "abort":
            self._abort(_WHY)
        self._note(present=False)  # last: a process that dies before this does it again

    def _note(self, *, present: bool) -> None:
        if self._policy != "continue" and present is not self._present:
            self._present = present
            self._emit(EventKind.CONSOLE, (), present=present)
