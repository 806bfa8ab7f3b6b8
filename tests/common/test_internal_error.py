"""The text of a bug says where the rest is: in the logs of this run, or on standard error where none are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dimos_streams.common.process.internal_error import internal_error, logs_are_shown_by, without_place
from dimos_streams.regression.differences import value_differences
from dimos_streams.regression.tolerances import EXACT
from dimos_streams.runtime.options import RunOptions

BUG = ZeroDivisionError("secret")
UNLOGGED = "internal error c1-error (ZeroDivisionError): its traceback is on standard error"


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    yield
    logs_are_shown_by(None)


@pytest.mark.parametrize(("machine", "shown_by"), [("", "rover-7"), ("arm", "--machine arm")])
def test_a_process_with_a_log_names_the_run_or_the_machine_of_its_part(machine: str, shown_by: str) -> None:
    logs_are_shown_by(RunOptions(run_dir=Path("/runs/1763790220123-rover-7"), machine=machine).log_selector)
    text = internal_error("c1-error", BUG)
    command = f"`dimos-streams logs {shown_by} | grep -F -A 40 c1-error`"
    assert text == f"internal error c1-error (ZeroDivisionError): {command} shows it"
    assert without_place(f"failed: {text}; so") == "failed: internal error c1-error (ZeroDivisionError); so"
    assert value_differences("/c", "text", text, UNLOGGED, EXACT) == [], "a replay has the same bug in another place"


def test_one_without_a_log_names_standard_error() -> None:
    logs_are_shown_by(RunOptions().log_selector)
    assert internal_error("c1-error", BUG) == UNLOGGED


@pytest.mark.virtual_time
async def test_virtual_time_has_no_logs_whatever_ran_in_the_process_before() -> None:
    logs_are_shown_by("rover-7")
    assert internal_error("c1-error", BUG) == UNLOGGED
