"""run --record: a live run's recording is its own, and goes on after its recorder's death."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from dimos_streams.recording.reader import LogReader
from tests.cli.machine import ROVER, Machine
from tests.helpers import until
from tests.ports import free_port
from tests.recording.logs import some_events, write_log

pytestmark = pytest.mark.live


def test_a_run_whose_port_is_taken_leaves_the_older_recording(machine: Machine, tmp_path: Path) -> None:
    older = write_log(tmp_path / "walk.lcmlog", some_events(10))
    part = write_log(tmp_path / "walk.1.lcmlog", some_events(5))
    before = older.read_bytes(), part.read_bytes()
    with socket.create_server(("127.0.0.1", machine.port)):
        result = machine("run", ROVER, "--port", str(machine.port), "--record", str(older))
    assert result.code == 2
    assert (older.read_bytes(), part.read_bytes()) == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["walk.1.lcmlog", "walk.lcmlog"]


def test_a_living_runs_recording_is_its_own(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "walk.lcmlog"
    run = ("run", ROVER, "--daemon", "--record", str(log), "--port")
    assert machine(*run, str(machine.port)).code == 0
    second = Machine(tmp_path / "other")
    refused = second(*run, str(free_port()))
    assert (refused.code, refused.err) == (2, f"error: log '{log}' can't be written: somebody else is writing it\n")
    before = events_of(log)
    os.kill(recorder_of(machine), signal.SIGKILL)
    asyncio.run(until(lambda: events_of(log) > before + 20))
    assert machine("stop").code == 0
    assert machine.leaves_nothing()
    assert second(*run, str(second.port)).code == 0
    assert second("stop").code == 0
    assert second.leaves_nothing()


def recorder_of(machine: Machine) -> int:
    (run,) = machine("status", "--json").json
    (pid,) = (process["pid"] for process in run["processes"] if process["modules"] == ["recorder"])
    assert isinstance(pid, int)
    return pid


def events_of(log: Path) -> int:
    with LogReader(log) as reader:
        return sum(1 for _ in reader.events())
