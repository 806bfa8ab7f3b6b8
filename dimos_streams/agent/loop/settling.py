"""The first part of an abort: all calls are ended, and what comes meanwhile is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.calls.call_endings import GRACE_S
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.control.commands import AbortCommand
from dimos_streams.agent.loop.intake import Intake
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.missions.message_queue import CallUpdate, QueueItem
from dimos_streams.common.tasks import first_of


class Settling:
    """Ends the calls of the agent, whatever mission they are of."""

    def __init__(self, calls: CallManager, intake: Intake, model: ModelInUse, wake: asyncio.Event) -> None:
        """``wake`` is set when something may have come."""
        self._calls = calls
        self._intake = intake
        self._model = model
        self._wake = wake

    async def run(self, abort: AbortCommand) -> None:
        """End all open calls within the bound, also those that turn up meanwhile: late ones have ``GRACE_S``."""
        calls, deadline = self._calls, clock.monotonic() + self._model.limits.abort_bound_s
        reason = f"aborted by the operator{f': {abort.reason}' if abort.reason else ''}"
        while calls.known.open or calls.starts.under_way:
            if calls.known.open:
                bound_s = max(GRACE_S, deadline - clock.monotonic())
                await self._drain_until(abort, calls.endings.end(calls.known.open, reason, bound_s=bound_s))
            else:
                await self._drain_until(abort, calls.starts.next_over())
        self._drain(abort)

    async def _drain_until(self, abort: AbortCommand, step: Coroutine[Any, Any, object]) -> None:
        """Carry out a step of an abort, and record what comes meanwhile."""
        task = asyncio.ensure_future(step)
        try:
            while not task.done():
                self._wake.clear()
                self._drain(abort)
                await first_of(task, self._wake)
        finally:
            task.cancel()
        task.result()

    def _drain(self, abort: AbortCommand) -> None:
        """Record what waits of the aborted missions, so that nobody waits for room in the queue."""
        self._intake.record_where(lambda item: _is_of(item, abort))


def _is_of(item: QueueItem, abort: AbortCommand) -> bool:
    """Return whether a waiting item is settled by an abort; what was said since is not."""
    if not item.missions:
        return isinstance(item, CallUpdate)
    return all(mission in abort.missions for mission in item.missions)
