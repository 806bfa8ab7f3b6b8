"""The watch over silent processes: one whose loop does not run is reported as hung, and killed after a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.runtime.events import RunEventKind
from dimos_streams.runtime.live.slots import START_BOUND_S, UP, Slot
from dimos_streams.runtime.liveness import BEAT_S, HUNG_AFTER_S, ModuleReporter
from dimos_streams.runtime.options import RunOptions

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class EmitRunEvent(Protocol):
    """A function that takes the events of processes."""

    def __call__(self, kind: RunEventKind, slot: Slot, *, text: str) -> None: ...


class SilenceWatch:
    """A watch that looks at a supervisor's processes as often as they beat."""

    def __init__(
        self, slots: Sequence[Slot], options: RunOptions, reporter: ModuleReporter, emit: EmitRunEvent
    ) -> None:
        self._slots = slots
        self._options = options
        self._reporter = reporter
        self._emit = emit

    async def run(self) -> None:
        """Watch until cancelled."""
        looked = clock.monotonic()
        while True:
            await asyncio.sleep(BEAT_S)
            now = clock.monotonic()
            if now - looked > HUNG_AFTER_S / 2:
                # This process itself was held up: the beats of that time are still to be read.
                for slot in self._slots:
                    slot.hear(now)
            looked = now
            for slot in self._slots:
                try:
                    await self._judge(slot, now)
                except Exception:  # a run that nobody watches would not notice that the others hang, either
                    _log.exception("whether process %r hangs could not be judged", slot.plan.label)

    async def _judge(self, slot: Slot, now: float) -> None:
        if slot.process is None or slot.process.pid is None:
            return  # it is not forked yet, or has ended
        silent_s = now - slot.heard
        if silent_s <= min(HUNG_AFTER_S, START_BOUND_S, self._options.hang_bound_s):
            return  # it has stalled for no longer than that: whether it waited for a processor need not be asked
        stalled_s = slot.stalled_s(now)
        if slot.state == "starting" and stalled_s > START_BOUND_S:
            slot.reported = f"process {slot.plan.label!r} was not ready within {START_BOUND_S:g} s"
            slot.process.kill()
        elif slot.state in UP and stalled_s > self._options.hang_bound_s:
            slot.reported = f"process {slot.plan.label!r} hung for {silent_s:.1f} s"
            slot.process.kill()
        elif slot.state in UP and silent_s > HUNG_AFTER_S:
            if slot.state == "ready":
                slot.state = "hung"
                self._emit("hung", slot, text="its loop does not run")
            health = f"hung: the loop has not run for {silent_s:.1f} s{self._where(slot)}"
            await self._reporter.report(slot.plan.names, slot.process.pid, health)

    def _where(self, slot: Slot) -> str:
        """Return the command that shows the line in which the process itself logs where it hangs."""
        selector = self._options.log_selector
        return (
            "" if selector is None else f"; `dimos-streams logs {selector} --process {slot.plan.label}` shows where"
        )
