"""The time for which processes that are silent have waited for a processor: on a busy machine they may live, and are
not heard because others run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.common.process.run_owner import FirstThread, first_thread
from dimos_streams.tool_stream.liveness.module_view import ModuleView

SILENT_S = 0.5
"""The silence of a module, in seconds, from which its wait for a processor is measured: two heartbeats."""


@dataclass(slots=True)
class _Silent:
    """A silent instance, as of the newest look."""

    looked: float
    thread: FirstThread
    starved_s: float = 0.0


class Starvation:
    """Measures, from one look to the next, for how long silent modules of this machine have waited for a processor. A
    process that has ended, or does not want to run, waits for none."""

    def __init__(self) -> None:
        self._host = os.uname().nodename
        self._silent: dict[str, _Silent] = {}
        self._now = 0.0

    def look(self) -> None:
        """Begin a look: what is asked for from now on is measured anew, once for each instance. An instance that was
        not asked for since the look before is heard again."""
        self._silent = {id: each for id, each in self._silent.items() if each.looked == self._now}
        self._now = clock.monotonic()

    def of(self, module: ModuleView) -> float:
        """Return the seconds for which a module that is silent has waited for a processor in its silence."""
        if module.age_s <= SILENT_S or module.host != self._host or not module.pid:
            return 0.0
        silent = self._silent.get(module.instance)
        if silent is None:
            silent = self._silent[module.instance] = _Silent(self._now, first_thread(module.pid))
        elif silent.looked != self._now:
            thread = first_thread(module.pid)
            is_gone = thread == FirstThread()
            waited_s = _waited(silent.thread, thread, self._now - silent.looked)
            silent.starved_s = 0.0 if is_gone else silent.starved_s + waited_s
            silent.looked, silent.thread = self._now, thread
        return silent.starved_s


def _waited(before: FirstThread, now: FirstThread, seconds: float) -> float:
    """The part of the seconds between two looks for which a thread has waited. The system counts a wait at its end:
    of one that goes on it is only known that the thread wants to run, and has not."""
    waited = now.waited_s - before.waited_s
    if before.wants_to_run and now.wants_to_run:
        waited = seconds - (now.ran_s - before.ran_s)
    return min(max(waited, 0.0), seconds)
