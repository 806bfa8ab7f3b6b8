"""A worker that ends knows whether another process takes its place, and says so to whoever watches it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.runtime.processes.worker import _Worker


@pytest.mark.parametrize(
    ("asked", "reason", "is_orphan", "restart", "replaced"),
    [
        (True, "", False, "on-failure", False),  # the run ends
        (True, "an operator restarts module 'bridge'", False, "never", True),
        (True, "the run has died", True, "on-failure", False),
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
