"""When the garbage collector looks: seldom while a process begins, later as usual, not at what it began with."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from dimos_streams.common.process.collector import collecting_seldom

_SCRIPT = """
import gc
from dimos_streams.common.process.collector import collect_seldom, keep_all_that_is_there
usual = gc.get_threshold()
collect_seldom()
assert gc.get_threshold()[0] >= 10 * usual[0], gc.get_threshold()
before = gc.get_freeze_count()
keep_all_that_is_there()
assert gc.get_threshold() == usual, gc.get_threshold()
assert gc.get_freeze_count() > before + 1000
"""


def test_a_process_begins_with_few_looks_and_goes_on_as_usual() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True)


def test_it_looks_seldom_for_a_while() -> None:
    usual = gc.get_threshold()
    with collecting_seldom():
        assert gc.get_threshold()[0] > usual[0]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("pace", [0, 1_000_000])
def test_the_pace_of_others_stays(pace: int) -> None:
    usual = gc.get_threshold()
    try:
        gc.set_threshold(pace)
        with collecting_seldom():
            assert gc.get_threshold()[0] == pace
        gc.set_threshold(*usual)
        with collecting_seldom():
            gc.set_threshold(pace)
        assert gc.get_threshold()[0] == pace
    finally:
        gc.set_threshold(*usual)


@pytest.mark.virtual_time
async def test_it_looks_seldom_in_a_test_in_virtual_time() -> None:
    usual = gc.get_threshold()
    with collecting_seldom():
        assert gc.get_threshold() == usual
