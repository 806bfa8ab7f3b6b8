"""The folder of a view's index goes with the view, or with the next one if the view was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from dimos_streams.common.process.run_owner import own
from dimos_streams.viewer.index_folder import index_folder


def test_what_a_killed_view_has_left_is_deleted_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, somebodys, copied = (tmp_path / f"dimos-streams-view-{name}" for name in ("left", "somebodys", "copied"))
    for folder in (left, somebodys):
        folder.mkdir()
        (folder / "journal.sqlite").write_text("x")
    os.close(own(left))  # as the system does for a process that is killed
    shutil.copytree(left, copied)
    with index_folder() as first, index_folder() as second:
        assert {*tmp_path.iterdir()} == {somebodys, copied, first, second}
    assert {*tmp_path.iterdir()} == {somebodys, copied}
