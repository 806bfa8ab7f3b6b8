"""Which directories are runs that have ended: nothing else is ever deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, is_ended_run


@pytest.mark.parametrize(("said", "is_run"), [("run", True), ("another", False)])
def test_a_copy_of_a_run_under_another_name_is_none(said: str, is_run: bool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / OWNER_FILE).write_text(RunOwner(directory=said).model_dump_json())
    assert is_ended_run(run) is is_run
