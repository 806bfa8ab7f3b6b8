"""How a command ends: all that must be done at its end is done, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, sys, threading
from dimos_streams.cli.system.leaving import leave

class Large:
    def __del__(self):
        print("taken apart")

large = Large()
large.itself = large
print("output")
atexit.register(print, "registered")
go = threading.Event()
threading.Thread(target=lambda: (go.wait(), print("thread"))).start()
threading.Timer(0.05, go.set).start()
leave(int(sys.argv[1]))
"""


def _left(code: int, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-E", "-c", SCRIPT, str(code)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=50, check=False)


@pytest.mark.parametrize("code", [0, 3])
def test_what_was_begun_ends_and_what_was_imported_is_not_taken_apart(code: int) -> None:
    left = _left(code)
    assert left.stderr == ""
    assert left.stdout.splitlines() == ["output", "thread", "registered"]
    assert left.returncode == code


def test_output_that_cannot_be_written_is_an_error_as_ever() -> None:
    with open("/dev/full", "wb") as full:
        left = _left(0, stdout=full.fileno())
    assert "No space left on device" in left.stderr
    assert left.returncode == 120


def test_threads_that_were_given_up_are_not_waited_for() -> None:
    script = """
import threading
from dimos_streams.cli.system.leaving import leave
from dimos_streams.common.process import given_up

endless = threading.Thread(target=threading.Event().wait)
endless.start()
given_up.threads.append(endless)
leave(1)
"""
    left = subprocess.run([sys.executable, "-E", "-c", script], capture_output=True, timeout=50, check=False)
    assert (left.returncode, left.stderr) == (1, b"")
