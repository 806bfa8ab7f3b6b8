"""The process from which all others are forked has ended, as for want of memory: what is said of those that it
forked, and of those that it was to fork."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.fork_server import explain_start_failure
from dimos_streams.runtime.processes.process import SupervisedProcess, describe_exit
from tests.helpers import no_threads

NOTHING: Any = None
PLAN = ProcessPlan("t", ())


@pytest.mark.parametrize("error", [EOFError("unexpected EOF"), BrokenPipeError(), ConnectionRefusedError()])
def test_what_it_was_to_fork_fails_in_a_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as an ``EOFError``, which the command line takes for the end of its input."""

    def ended(process: ForkServerProcess) -> None:
        raise error

    async def scenario() -> None:
        monkeypatch.setattr(ForkServerProcess, "start", ended)
        with explain_start_failure():
            await SupervisedProcess(PLAN, NOTHING, lambda report: None, lambda code: None).start()

    with pytest.raises(ModuleFailedError, match=r"processes can't be started: .* has ended; .*`ulimit -v`"):
        asyncio.run(scenario())


def test_what_it_forked_is_not_said_to_have_ended_by_itself(tmp_path: Path) -> None:
    log = tmp_path / "t.log"
    log.write_text("serving on http://127.0.0.1:7780\n")
    ends: list[str] = []

    async def scenario(sentinel: int) -> None:
        supervised: Any = SupervisedProcess(
            PLAN, NOTHING, lambda report: None, lambda code: ends.append(describe_exit(code, log))
        )
        supervised._process = SimpleNamespace(
            name="t", sentinel=sentinel, exitcode=255, join=lambda: None, close=lambda: None
        )
        supervised.last_pid = os.getpid()  # it lives
        supervised._on_end()
        supervised._worker_end.close()

    with Path(os.devnull).open() as sentinel:
        asyncio.run(scenario(sentinel.fileno()))
    assert ends == ["was lost: the process from which all others of the run are forked has ended, and they with it"]


def test_nothing_is_asked_of_it_that_would_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork that fails ends it, and with it all workers that run."""
    asked: list[object] = []

    supervised = SupervisedProcess(PLAN, NOTHING, lambda report: None, lambda code: None)
    monkeypatch.setattr(ForkServerProcess, "start", asked.append)
    refusal = pytest.raises(UserError, match=r"processes can't be started: .*`ulimit -u`, .*\)$")
    with no_threads(), refusal, explain_start_failure():
        supervised._fork()
    assert asked == []


def test_one_that_could_not_be_started_for_want_of_a_thread_is_not_started_later() -> None:
    go_on, forked = threading.Event(), list[str]()

    async def scenario() -> None:
        supervised: Any = SupervisedProcess(PLAN, NOTHING, lambda report: None, lambda code: None)
        supervised._fork = lambda: forked.append("late")
        with ThreadPoolExecutor(2) as executor:
            asyncio.get_running_loop().set_default_executor(executor)
            another = asyncio.create_task(asyncio.to_thread(go_on.wait))
            await asyncio.sleep(0)
            with no_threads(), pytest.raises(OSError, match="no more threads"):
                await supervised.start()
            go_on.set()
            await another
        supervised._worker_end.close()
        supervised._reports.close()

    asyncio.run(scenario())
    assert forked == []
