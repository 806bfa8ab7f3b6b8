"""Processes of a run are called by their labels in ``top``."""

from __future__ import annotations

import os
from pathlib import Path

from dimos_streams.common.process.run_owner import process_start
from dimos_streams.runtime.processes.worker import name_process

SHOWN = Path("/proc/self/comm")


def test_a_process_is_shown_by_its_label() -> None:
    before = SHOWN.read_text()
    try:
        name_process("robot1/perception")
        assert SHOWN.read_text() == "robot1/percepti\n"
    finally:
        name_process(before.strip())


def test_a_process_may_have_any_name() -> None:
    before = SHOWN.read_bytes()
    try:
        SHOWN.write_bytes(b"x) \xff")
        assert process_start(os.getpid()) is not None
    finally:
        SHOWN.write_bytes(before.strip())
