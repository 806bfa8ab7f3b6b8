"""What workers that are forks of one process have for themselves."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.postgres_cluster import PostgresCluster, is_installed
from tests import ports
from tests.forked_workers import look_for_constants
from tests.ports import free_bus, free_port, free_udp_port
from tests.stack_room import with_room

_CALLS, _DEPTHS = 500, 200


def test_processes_take_ports_of_their_own_also_those_of_other_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_claims", {})
    taken = []
    try:
        for process in range(6):
            monkeypatch.setattr(os, "getpid", lambda process=process: process)
            taken += [{each % ports.PROCESSES for each in (free_port(), free_udp_port(), free_port())}]
    finally:
        for _, shown in ports._claims.values():
            os.close(shown)
    assert len(set().union(*taken)) == len(taken) == sum(map(len, taken))


def test_no_connection_of_anybodys_takes_a_port_before_its_server_is_there(tmp_path: Path) -> None:
    """Nor while the server is killed and begun again."""
    urls = [free_bus(), f"tcp://127.0.0.1:{free_port()}"] + [PostgresCluster(tmp_path).url] * is_installed()
    assert all(1024 <= (urlsplit(url).port or 0) < 32_768 for url in urls), urls


def test_ports_of_buses_are_none_that_a_robot_on_dds_takes_in_any_domain() -> None:
    assert not any(ports.is_of_dds(free_udp_port()) for _ in range(ports.PROCESSES))
    assert ports.is_of_dds(7400 + 250 * 42 + 11)


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


def test_constants_are_looked_for_before_workers_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would look through all that is imported, which takes it a third of a second."""
    looks = 0

    class Imported(dict[str, ModuleType]):
        def values(self) -> Any:
            nonlocal looks
            looks += 1
            return super().values()

    look_for_constants()  # in what is imported so far: it looks again for what is more than that
    more = Imported(sys.modules | {"one more": ModuleType("one more")})
    with monkeypatch.context() as patched:
        patched.setattr(sys, "modules", more)
        look_for_constants()
    assert looks
