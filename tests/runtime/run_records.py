"""Records of runs and of their processes, as tests write them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dimos_streams import clock
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, own, pid_space, process_start
from dimos_streams.runtime.registry import ProcessRecord, RunRecord, write
from dimos_streams.runtime.run_directories import (
    new_run_dir,
    note_ready,
    state_dir,
)


def ended_process() -> tuple[int, int]:
    """Number and start of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_start(process.pid)
    process.communicate(b"\n")
    assert started is not None
    return process.pid, started


def make_run(name: str, *, lives: bool = False, was_ready: bool = True) -> Path:
    path = state_dir() / "runs" / name
    (path / "logs").mkdir(parents=True)
    if was_ready:
        note_ready(path)
    if lives:
        own(path)
    else:
        (path / OWNER_FILE).write_text(RunOwner(directory=name).model_dump_json())
    return path


def living_record(run_dir: Path | None = None) -> RunRecord:
    """The record of a run that this process supervises."""
    pid = os.getpid()
    run_dir = run_dir or new_run_dir("rover")
    record = RunRecord(
        run_id=run_dir.name,
        pid=pid,
        pid_started=process_start(pid) or 0,
        pid_space=pid_space(),
        blueprint="rover",
        bus_url="memq://",
        port=None,
        started_utime=clock.utime(),
        run_dir=run_dir,
    )
    write(record)
    return record


def process_record(label: str, *, pid: int | None = None, pid_started: int | None = None) -> ProcessRecord:
    """The record of a ready process with one module, which has its name."""
    return ProcessRecord(label=label, modules=(label,), pid=pid, state="ready", restarts=0, pid_started=pid_started)
