"""For how long a process has waited for a processor, measured on real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dimos_streams.common.process.run_owner import first_thread, waited_s
from tests.helpers import wait_for

BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


@contextmanager
def two_on_one_processor() -> Iterator[tuple[int, int]]:
    """Two processes that would like to run all the time, on one processor."""
    both = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(2)]
    try:
        yield both[0].pid, both[1].pid
    finally:
        for each in both:
            each.kill()
            each.wait()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not say")
def test_who_runs_while_others_do_waits_and_who_is_stopped_does_not() -> None:
    with two_on_one_processor() as (one, other):
        wait_for(lambda: min(first_thread(one).waited_s, first_thread(other).waited_s) >= 0.1, 30.0)
        os.kill(one, signal.SIGSTOP)
        wait_for(lambda: " T " in Path(f"/proc/{one}/stat").read_text())
        before = first_thread(one).waited_s
        time.sleep(0.3)
        assert first_thread(one).waited_s == before, "what does not want to run does not wait"
        assert waited_s(one) == before
    assert first_thread(one).waited_s == waited_s(one) == 0.0, "it has gone"
