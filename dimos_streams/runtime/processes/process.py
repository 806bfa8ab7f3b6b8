"""One supervised process, as the supervisor starts, hears and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from dimos_streams import clock
from dimos_streams.common.process import run_owner
from dimos_streams.common.process.disk import check_free_descriptors
from dimos_streams.common.process.run_owner import process_start
from dimos_streams.common.process.threads import check_free_thread, in_executor
from dimos_streams.common.tasks import ends_within
from dimos_streams.runtime.plan import ChangedSettings, ProcessPlan
from dimos_streams.runtime.processes.fork_server import end_stalled_server, fork
from dimos_streams.runtime.processes.orphaned import FORKSERVER_ENDED
from dimos_streams.runtime.processes.reports import Report, ReportReader
from dimos_streams.runtime.processes.worker import main
from dimos_streams.runtime.processes.worker_task import BEGIN, STOP, WorkerTask

_KILL_BOUND_S = 5.0
"""Time, in seconds, after which the end of a process that was sent SIGKILL should be known."""
_FILES = 8
"""Number of descriptors that must be free before a request to fork is made, which takes fewer: half a request would
end the forkserver, and all its workers with it."""

EXIT_UNKNOWN = 256
"""The exit code, larger than any real one, of a process whose end nobody could see, because the forkserver ended
before it."""
_SERVER_GONE = (
    "the process from which all others are forked has ended; the system may give the run no more memory or processes"
    " (limits of a container, `ulimit -v`, `ulimit -u`)"
)

_logger = logging.getLogger(__name__)


class SupervisedProcess:
    """A process that runs ``worker.main``. ``on_report`` and ``on_exit`` are called on the loop."""

    def __init__(
        self,
        plan: ProcessPlan,
        task: WorkerTask,
        on_report: Callable[[Report], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._on_report = on_report
        self._on_exit = on_exit
        context = multiprocessing.get_context("forkserver")
        self._reports, self._worker_end = context.Pipe()
        self._reader = ReportReader(self._reports)
        # A daemon, so that the interpreter ends it at its exit instead of waiting for it.
        self._process: ForkServerProcess = context.Process(
            target=main, args=(task, self._worker_end), name=f"dimos-streams:{plan.label}", daemon=True
        )
        self._exited = asyncio.Event()
        self._killed: float | None = None
        self.last_pid: int | None = None
        """Its number, also after its end; None before its start."""

    @property
    def pid(self) -> int | None:
        """The process's number, or None before its start and after its end."""
        return None if self._exited.is_set() else self._process.pid

    @property
    def waited_s(self) -> float:
        """Seconds for which it has waited for a processor since its start; 0 while there is no process."""
        return 0.0 if self.pid is None else run_owner.waited_s(self.pid)

    async def start(self) -> None:
        """Fork the process. The forkserver must have begun. If this is cancelled, it still forks, and can be ended
        then."""
        _leave_deleted_folder()
        forking = in_executor(None, self._fork)
        try:
            await asyncio.shield(forking)
        finally:
            await asyncio.wait([forking])
            if forking.exception() is None:
                self._watch()

    def _fork(self) -> None:
        check_free_descriptors(_FILES)
        check_free_thread()  # a fork that fails ends the forkserver, and all its workers with it
        try:
            fork(self._process)
        except (EOFError, ConnectionError) as error:
            raise ChildProcessError(_SERVER_GONE) from error

    def _watch(self) -> None:
        self._worker_end.close()
        self.last_pid = self._process.pid
        loop = asyncio.get_running_loop()
        loop.add_reader(self._reports.fileno(), self._read)
        loop.add_reader(self._process.sentinel, self._on_end)

    def begin(self, live: ChangedSettings) -> None:
        """Let a worker that has prepared itself begin, with what operators have set until now."""
        self._send({"kind": BEGIN, "live": live})

    async def end(self, term_bound_s: float, reason: str = "") -> None:
        """Send SIGTERM, and SIGKILL if that does not end it within the bound. Ending twice is fine.

        A ``reason`` is for the callers of the calls that run in it.
        """
        for number, bound in ((signal.SIGTERM, term_bound_s), (signal.SIGKILL, _KILL_BOUND_S)):
            if self._exited.is_set() or self.pid is None:
                return
            if reason and number is signal.SIGTERM:
                self._send({"kind": STOP, "reason": reason})  # read before the signal is handled
            self._signal(number)
            if not await ends_within(bound, self._exited.wait()):
                self._look_for_end()
                _logger.error("%s did not end within %g s of %s", self._process.name, bound, number.name)

    def kill(self) -> None:
        """Send SIGKILL without waiting; ``on_exit`` reports the end."""
        if self.pid is not None:
            self._signal(signal.SIGKILL)
            self._killed = self._killed or clock.monotonic()
            if clock.monotonic() - self._killed > _KILL_BOUND_S:
                self._look_for_end()

    def _look_for_end(self) -> None:
        """See to it that an end is reported that has come."""
        if self.pid is not None and process_start(self.pid) is None:
            end_stalled_server(self.pid)

    def _send(self, command: Report) -> None:
        try:
            self._reports.send_bytes(json.dumps(command).encode())
        except OSError as error:  # it has ended, or ends
            _logger.debug("%s can't be told %r: %s", self._process.name, command["kind"], error)

    def _signal(self, number: signal.Signals) -> None:
        assert self.pid is not None
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:  # it ended this very moment; its sentinel shows it
            return

    def _read(self) -> None:
        if not self._take_reports():
            asyncio.get_running_loop().remove_reader(self._reports.fileno())

    def _take_reports(self) -> bool:
        """Hand on what has been reported; return False if no more can come."""
        try:
            for report in self._reader.read():
                self._on_report(report)
        except (EOFError, OSError):
            return False
        return True

    def _on_end(self) -> None:
        loop = asyncio.get_running_loop()
        self._take_reports()
        loop.remove_reader(self._reports.fileno())
        loop.remove_reader(self._process.sentinel)
        self._process.join()
        code = self._process.exitcode
        if self.last_pid is not None and process_start(self.last_pid) is not None:
            self._send({"kind": STOP, "reason": FORKSERVER_ENDED})  # it ends with the pipes that are closed here
            code = EXIT_UNKNOWN
        self._reports.close()
        self._process.close()
        self._exited.set()
        self._on_exit(code if code is not None else -1)


def describe_exit(code: int, log: Path | None) -> str:
    """Return an exit code in words, with the last line of the log where it may say why."""
    if code < 0:
        return f"ended by {_signal_name(-code)}"
    if code == EXIT_UNKNOWN:
        return f"was lost: {FORKSERVER_ENDED}"
    line = _last_line(log)
    return f"ended with exit code {code}" + (f": {line}" if line else "")


def _signal_name(number: int) -> str:
    """Return a signal's name, or its number: most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(log: Path | None) -> str:
    if log is None:
        return ""
    # The end of a process is acted on also where its log can't be read: deleted, or no more files may be open.
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""
    return ""


def _leave_deleted_folder() -> None:
    """Go to another working directory if this one was deleted: none could be started in it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir("/")
        _logger.warning("the working directory was deleted: processes are started in / from now on")
