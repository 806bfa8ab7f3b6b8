"""One run from its start to its summary: it starts the blueprint, shows what happens, and ends it in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.bus.url import why_local
from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.running.display.announcement import ready_text, start_line
from dimos_streams.cli.running.display.log_display import LogDisplay
from dimos_streams.cli.running.display.shown_logs import set_up_logging
from dimos_streams.cli.running.display.summary import write_json_summary, write_summary
from dimos_streams.cli.running.other_parts import OtherParts
from dimos_streams.cli.running.restartable import restartable
from dimos_streams.cli.running.run_entry import RunEntry
from dimos_streams.cli.running.run_link import RunLink, http_link, local_link, own_bus_link, recording_losses
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.cli.running.runner import create_runner
from dimos_streams.cli.running.said_missions import SaidMissions
from dimos_streams.cli.running.stall import StallWatch
from dimos_streams.cli.system.async_runner import finish, run_async
from dimos_streams.cli.terminal.call_counts import CallCounts
from dimos_streams.cli.terminal.log_files import LogLine
from dimos_streams.cli.terminal.reporter import Reporter, create_reporter, log_reporter
from dimos_streams.common.process.collector import keep_all_that_is_there
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import DimosStreamsError
from dimos_streams.runtime import registry
from dimos_streams.runtime.events import ProcessView, RunEvent
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.parts.part_host import host_part
from dimos_streams.tool_stream.event import ToolEvent

_CLOSE_BOUND_S = 3.0
_STOPPED_CLOSE_BOUND_S = 1.0

OnReady = Callable[["registry.RunRecord"], None]


class _Runner(Protocol):
    """The protocol that ``Supervisor`` and ``InProcessRun`` have in common."""

    async def start(self) -> None: ...
    async def wait(self) -> None: ...
    async def stop(self) -> None: ...
    def processes(self) -> list[ProcessView]: ...


def run_session(plan: RunPlan, *, on_ready: OnReady | None = None) -> int:
    """Run a plan to its end and return the exit code. ``on_ready`` is for runs that go on in the background: it is
    called once all modules are up, and what happens then is logged instead of shown.

    Raises what made the run fail, and ``Interrupted``; the run has ended in order then.
    """
    options = plan.options()
    set_up_logging(plan.mode, options, warn=not plan.request.log_stdout, in_background=on_ready is not None)
    session = _Session(plan, options, on_ready)
    return run_async(session.run(), virtual=plan.mode == "virtual", hurry=session.hurry)


class _Session:
    def __init__(self, plan: RunPlan, options: RunOptions, on_ready: OnReady | None) -> None:
        self._plan = plan
        self._request = plan.request
        self._options = options
        self._on_ready = on_ready
        self._counts = CallCounts()
        self._missions = SaidMissions(plan)
        self._stall = StallWatch()
        self._runner: _Runner = create_runner(plan, options, self._on_run_event)
        logs = options.run_dir if plan.request.log_stdout else None
        self._logs = None if logs is None else LogDisplay(logs, self._log_line)
        self._entry = RunEntry(plan, options, self._runner.processes)
        self._how = ""
        """How the run has ended."""
        self._ready_at: tuple[float, float] | None = None
        """The time at which all was ready, on the loop's clock and on the wall's; None before."""

    async def run(self) -> int:
        self._reporter: Reporter = create_reporter(as_json=self._request.as_json, plain=self._on_ready is not None)
        self._began = clock.monotonic()
        try:
            self._entry.renew()
            if self._logs is not None:
                self._logs.start()
            self._reporter.note(start_line(self._plan))
            if self._plan.part and (why := why_local(self._options.bus_url)):
                self._reporter.note(
                    f"parts on other machines can't be heard on {redacted(self._options.bus_url)}: {why}"
                )
            async with self._among_parts() as part:
                with self._plan.record.replacing() if self._plan.record else contextlib.nullcontext():
                    await self._runner.start()
                async with self._changeable(), self._link() as link:
                    await link.introduced([name for process in self._runner.processes() for name in process.modules])
                    self._announce()
                    return await self._attend(link, part)
        except BaseException as error:
            self._how = "stopped" if isinstance(error, asyncio.CancelledError) else f"failed: {error}"
            raise
        finally:
            await finish(self._end())

    def hurry(self) -> None:
        """End the processes without asking, because the person does not want to wait."""
        for pid in self._other_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _other_pids(self) -> list[int]:
        pids = (process.pid for process in self._runner.processes())
        return [pid for pid in pids if pid is not None and pid != os.getpid()]

    async def _attend(self, link: RunLink, part: OtherParts | None) -> int:
        """Wait for whatever ends the run; return the exit code."""
        ends = [asyncio.ensure_future(end) for end in self._ends(link, part)]
        try:
            await asyncio.wait(ends, timeout=self._request.duration_s, return_when=asyncio.FIRST_COMPLETED)
            ended = next((end for end in ends if end.done()), None)
            if ended is None:
                return await self._time_is_up(link)
            code: int = ended.result()
            over = "all that was said is over"
            self._how = f"{over} (exit code {code})"
            await link.end_calls(over, _CLOSE_BOUND_S)  # what others have begun goes on until then
            return code
        except asyncio.CancelledError:
            if isinstance(self._runner, Supervisor):
                self._runner.expect_stop()
            self._reporter.note("stopping (press Ctrl-C again to force it)" if self._other_pids() else "stopping")
            await finish(link.end_calls("the run is stopped", _STOPPED_CLOSE_BOUND_S))
            raise
        except DimosStreamsError:
            if isinstance(self._runner, Supervisor):  # its bridge may end first, and closes what a dead process ran
                self._runner.expect_stop()
                down = {name for process in self._runner.processes() if process.failing for name in process.modules}
                await finish(link.end_calls("the run has failed", _STOPPED_CLOSE_BOUND_S, down=down))
            raise
        finally:
            await end_tasks_silently(*ends)

    def _ends(self, link: RunLink, part: OtherParts | None) -> Iterator[Awaitable[Any]]:
        """Yield what ends the run when it ends, whichever is first; some of it only fails."""
        yield self._runner.wait()
        yield self._mission(link, part)
        if part is not None:
            part.host.declare_ready()
            yield part.report(self._reporter.note, self._entry.renew_soon)
        if self._plan.mode == "virtual" and self._request.duration_s is None:
            yield self._stall.run(link.watch)

    async def _time_is_up(self, link: RunLink) -> int:
        """End what goes on when the run's duration is over, as it was meant to; return the exit code, for which what
        had ended before counts, and processes that are down."""
        code = self._missions.exit_code
        over = f"the run's duration of {self._request.duration_s:g} s is over"
        self._how = over
        self._reporter.note(over)
        failing = [process for process in self._runner.processes() if process.failing]
        for process in failing:
            down = f"process {process.label!r} keeps failing or is down: {process.failing}"
            self._reporter.note(down)
            self._how += f"; {down}"
        await link.end_calls(over, _CLOSE_BOUND_S)
        return max(code, 1) if failing else code

    async def _mission(self, link: RunLink, part: OtherParts | None) -> int:
        """Say what is to be said, once all parts are there. This returns, with an exit code, only if its end is the
        end of the run."""
        if part is not None and self._request.said:
            await part.wait()
            await link.introduced(part.host.part.modules)
        await self._missions.run(link)
        if self._request.exit_when_done:
            return self._missions.exit_code
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never

    @asynccontextmanager
    async def _among_parts(self) -> AsyncIterator[OtherParts | None]:
        """Speak for the part of this machine, if the run is one of several."""
        if self._plan.part is None:
            yield None
            return
        async with host_part(self._plan.part, self._options, _end_this_command) as host:
            self._entry.others = OtherParts(host, self._plan.wait_s)
            yield self._entry.others

    def _link(self) -> AbstractAsyncContextManager[RunLink]:
        """Return the link to the run, which has started."""
        if isinstance(self._runner, InProcessRun):
            return local_link(self._runner.gateway, self._runner.bus, self._show)
        if self._plan.bridge is not None:
            return http_link(self._options.bridge_url, self._options.token, self._show)
        return own_bus_link(self._options.bus_url, self._show)

    def _changeable(self) -> AbstractAsyncContextManager[None]:
        """Let modules be restarted while the run goes on."""
        runner, run_dir = self._runner, self._options.run_dir
        if not isinstance(runner, Supervisor) or run_dir is None:
            return contextlib.nullcontext()
        on_reload = self._on_run_event if self._request.reload else None
        return restartable(runner, run_dir, self._entry.renew, on_reload=on_reload)

    def _show(self, event: ToolEvent) -> None:
        self._counts.count(event)
        self._stall.note(event)
        self._reporter.tool_event(event)

    def _log_line(self, line: LogLine) -> None:
        self._reporter.log_line(line)

    def _on_run_event(self, event: RunEvent) -> None:
        self._reporter.module_event(event)
        self._entry.renew_soon()

    def _announce(self) -> None:
        if self._plan.mode != "virtual":  # whose run is over before there is much to look at
            keep_all_that_is_there()
        self._ready_at = (clock.monotonic(), time.perf_counter())
        self._entry.renew()
        self._entry.note_ready()
        record, took_s = self._entry.record, clock.monotonic() - self._began
        text = ready_text(self._plan, self._options, record.run_dir if record else None, took_s)
        run_id, bridge = record.run_id if record else None, self._options.bridge_url if self._plan.serves else None
        self._reporter.note(text, "ready", run_id=run_id, bridge=bridge)
        if self._on_ready is not None and record is not None:
            self._on_ready(record)
            self._reporter = log_reporter()

    async def _end(self) -> None:
        ran = self._measured()
        losses: list[str] = []
        try:
            if ran is not None:
                losses = await self._recording_losses()
        finally:
            await self._runner.stop()
        self._entry.remove(self._how)
        if self._logs is not None:
            self._logs.stop()
        for loss in losses:
            self._reporter.note(loss)
        self._reporter.close()
        if ran is not None and self._on_ready is None:
            self._summarize(*ran)

    async def _recording_losses(self) -> list[str]:
        recorders = self._plan.recorders
        if self._plan.mode != "live" or self._plan.bridge is None or not recorders:
            return []
        return await recording_losses(BridgeAddress(self._options.bridge_url, self._options.token), recorders)

    def _measured(self) -> tuple[float, float] | None:
        """Return the seconds since all was ready, on the loop's clock and on the wall's; None if it never was."""
        if self._ready_at is None:
            return None
        return clock.monotonic() - self._ready_at[0], time.perf_counter() - self._ready_at[1]

    def _summarize(self, ran_s: float, wall_s: float) -> None:
        if self._request.as_json:
            write_json_summary(ran_s, wall_s, self._counts, self._request.said, self._missions.closes)
        else:
            write_summary(ran_s, wall_s, self._counts, is_virtual=self._plan.mode == "virtual")


def _end_this_command() -> None:
    """End this command as `stop` on this machine does."""
    os.kill(os.getpid(), signal.SIGTERM)
