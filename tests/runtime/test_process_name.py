"""Processes of a run are called by their labels in ``top``."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.runtime.processes.worker import name_process

SHOWN = Path("/proc/self/comm")


def test_a_process_is_shown_by_its_label() -> None:
    before = SHOWN.read_text()
    try:
        name_process("robot1/perception")
        assert SHOWN.read_text() == "robot1/percepti\n"
    finally:
        name_process(before.strip())
