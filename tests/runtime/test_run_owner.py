"""Which directories are runs that have ended: nothing else is ever deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, is_ended_run, owner_of


@pytest.mark.parametrize(("said", "is_run"), [("run", True), ("another", False)])
def test_a_copy_of_a_run_under_another_name_is_none(said: str, is_run: bool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / OWNER_FILE).write_text(RunOwner(directory=said).model_dump_json())
    assert is_ended_run(run) is is_run


def test_a_run_is_of_the_process_of_its_number_only_while_that_has_it_open(tmp_path: Path) -> None:
    run = tmp_path / f"20261129-{os.getpid()}"
    run.mkdir()
    (run / OWNER_FILE).write_text(RunOwner(directory=run.name).model_dump_json())
    assert owner_of(run) is None
    with (run / OWNER_FILE).open():
        assert owner_of(run) == os.getpid()
