"""A worker that ends knows whether another process takes its place, and says so to whoever watches it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.orphaned import FORKSERVER_ENDED, run_died
from dimos_streams.runtime.processes.process import SupervisedProcess
from dimos_streams.runtime.processes.worker import _Worker


@pytest.mark.parametrize(
    ("asked", "reason", "is_orphan", "restart", "replaced"),
    [
        (True, "", False, "on-failure", False),  # the run ends
        (True, "an operator restarts module 'bridge'", False, "never", True),
        (True, "the run has died", True, "on-failure", False),
        (True, FORKSERVER_ENDED, True, "on-failure", True),
        (True, FORKSERVER_ENDED, True, "never", False),
        (False, "", False, "on-failure", True),  # one of its modules has failed
        (False, "", False, "never", False),
    ],
)
def test_a_process_is_replaced_for_a_reason_or_by_its_policy(
    asked: bool, reason: str, is_orphan: bool, restart: str, replaced: bool
) -> None:
    nothing: Any = None
    task: Any = SimpleNamespace(process=SimpleNamespace(restart=restart))
    worker = _Worker(task, nothing, nothing)
    worker._end, worker._stop_reason, worker._is_orphan = asyncio.Event(), reason, is_orphan
    if asked:
        worker._end.set()
    assert worker._is_replaced() is replaced


@pytest.mark.parametrize("forkserver_ended", [True, False])
def test_a_worker_that_is_let_go_says_whether_its_run_has_died(forkserver_ended: bool) -> None:
    nothing: Any = None

    async def scenario(sentinel: int) -> str:
        supervised: Any = SupervisedProcess(ProcessPlan("t", ()), nothing, lambda report: None, lambda code: None)
        task: Any = SimpleNamespace(options=RunOptions())
        worker = _Worker(task, supervised._worker_end, nothing)
        worker._end = asyncio.Event()
        supervised._process = SimpleNamespace(
            name="t", sentinel=sentinel, exitcode=255, join=lambda: None, close=lambda: None
        )
        supervised.last_pid = os.getpid() if forkserver_ended else None  # a process that lives, or none
        supervised._on_end()
        worker._on_orphaned()
        supervised._worker_end.close()
        return worker._stop_reason

    with Path(os.devnull).open() as sentinel:
        reason = asyncio.run(scenario(sentinel.fileno()))
    assert reason == (FORKSERVER_ENDED if forkserver_ended else run_died(""))
