"""The entry of a run in the registry, by which other commands find it and see how it stands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from dimos_streams import clock
from dimos_streams.cli.running.begun_with import keep_settings
from dimos_streams.cli.running.other_parts import OtherParts
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.run_owner import pid_space, process_start, run_id_of
from dimos_streams.runtime import registry, run_directories
from dimos_streams.runtime.ended_runs import write_end
from dimos_streams.runtime.events import ProcessView
from dimos_streams.runtime.live.restarts import STEADY_AFTER_S
from dimos_streams.runtime.options import RunOptions

_RENEW_S = 5.0
"""The time, in seconds, after which a record that could not be written is tried again."""
_APART_S = 0.05
"""The least time, in seconds, between two renewals for what happens: of many processes much happens at once."""

_LOOK_S = 2.0
"""The time, in seconds, between two looks at whether the record is still there."""

_log = LimitedLog(logging.getLogger(__name__), period_s=60.0)


class RunEntry:
    """The entry, from the first ``renew`` to ``remove``. A run without files has none."""

    def __init__(self, plan: RunPlan, options: RunOptions, processes: Callable[[], list[ProcessView]]) -> None:
        self._plan = plan
        self._options = options
        self._processes = processes
        self._renewing: asyncio.TimerHandle | None = None
        self._renewed_at = float("-inf")
        self._looking: asyncio.TimerHandle | None = None
        self._starts: dict[int, int] = {}
        """The start of each living process, by its number."""
        self._removed = False
        self.record: registry.RunRecord | None = None
        """The record as it was made last; None if there is none."""
        self.others: OtherParts | None = None
        """The parts on other machines, if the run is one of several."""

    def renew(self) -> None:
        """Make the run, as it stands, known to other commands. Raises ``UserError`` if the first record can't be
        written."""
        options = self._options
        if options.run_dir is None or self._removed:
            return
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        first = self.record is None
        self.record = self._present(options.run_dir)
        self._renewed_at = clock.monotonic()
        try:
            if first:
                keep_settings(self._plan.blueprint, options.run_dir)
            registry.write(self.record)
            if first and self._plan.mode != "virtual":
                self._look_later()
        except OSError as error:
            if first:
                raise run_directories.cannot_begin_in(options.run_dir, error) from error
            _log.warning("what `status` reads of the run can't be renewed: %s", error)
            self._renew_in(_RENEW_S)
        # That a process has not ended again for long enough is no event.
        if any(process.failing and process.state == "ready" for process in self.record.processes):
            self._renew_in(STEADY_AFTER_S)

    def renew_soon(self) -> None:
        """Renew the record when what is happening has come true: once for all that happens at about the same time."""
        if self._options.run_dir is not None and not self._removed:
            self._renew_in(max(0.0, self._renewed_at + _APART_S - clock.monotonic()))

    def note_ready(self) -> None:
        """Write down that all of the run is ready: as a run that has ended it is kept longer then."""
        if self.record is None:
            return
        try:
            run_directories.note_ready(self.record.run_dir)
        except OSError as error:
            _log.warning("that the run is ready can't be written down, so it may be deleted early: %s", error)

    def remove(self, how: str) -> None:
        """Take the entry back, and write down how the run has ended; ``renew`` does nothing from now on."""
        self._removed = True
        for timer in (self._renewing, self._looking):
            if timer is not None:
                timer.cancel()
        if self.record is None:
            return
        with contextlib.suppress(OSError):  # on a full disk its directory does not say it
            write_end(self.record, how)
        registry.remove(self.record)

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        """Write a record anew that was deleted or damaged: without it no command finds a robot that moves."""
        if self.record is not None and not registry.is_known(self.record):
            directory = self.record.run_dir
            _log.warning("the run's record in %s was deleted or damaged, and is written anew", directory)
            self.renew()
        self._look_later()

    def _present(self, run_dir: Path) -> registry.RunRecord:
        pid, options = os.getpid(), self._options
        return registry.RunRecord(
            run_id=run_id_of(run_dir),
            pid=pid,
            pid_started=process_start(pid) or 0,
            pid_space=pid_space(),
            blueprint=self._plan.blueprint.name,
            machine=options.machine,
            others=self.others.states() if self.others else {},
            clocks=self.others.host.module.clocks if self.others else {},
            bridge_on=self._plan.part.bridge_on if self._plan.part else "",
            bridge=options.bridge or None,
            bus_url=options.bus_url,
            host=options.host,
            port=options.port if self._plan.serves else None,
            token=options.token,
            started_utime=self.record.started_utime if self.record else clock.utime(),
            run_dir=run_dir,
            processes=self._with_starts(self._processes()),
        )

    def _with_starts(self, processes: list[ProcessView]) -> tuple[registry.ProcessRecord, ...]:
        """Return processes with their starts, which distinguish each from a later one of its number."""
        pids = [process.pid for process in processes if process.pid is not None]
        starts = ((pid, self._starts.get(pid) or process_start(pid)) for pid in pids)
        self._starts = {pid: started for pid, started in starts if started is not None}
        return tuple(
            registry.ProcessRecord(
                **asdict(each), pid_started=None if each.pid is None else self._starts.get(each.pid)
            )
            for each in processes
        )

    def _renew_in(self, seconds: float) -> None:
        """Renew the run's record later, unless that is to be done earlier already. The run goes on without it: other
        commands see its state for themselves."""
        if self._renewing is not None:
            if self._renewing.when() <= clock.monotonic() + seconds:
                return
            self._renewing.cancel()
        self._renewing = asyncio.get_running_loop().call_later(seconds, self.renew)
