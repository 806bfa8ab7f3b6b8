"""What workers that are forks of one process have for themselves."""

from __future__ import annotations

import resource

import pytest

from tests.ports import free_port
from tests.stack_room import with_room

_CALLS, _DEPTHS = 500, 200


def test_workers_take_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    for number in range(6):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        taken.append(free_port() % 32)
    assert len(set(taken)) == 6


def _nothing() -> None:
    pass


def _call_often_at_each_depth(depth: int = _DEPTHS) -> None:
    for _ in range(_CALLS):
        _nothing()
    if depth:
        _call_often_at_each_depth(depth - 1)


def test_calls_on_a_stack_with_room_take_no_memory_from_the_system() -> None:
    """Without room there is a depth at which each call does."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    with_room(_call_often_at_each_depth)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < _CALLS / 2
