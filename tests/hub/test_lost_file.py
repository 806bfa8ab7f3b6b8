"""An SQLite file that is deleted or replaced under a hub: nothing is acknowledged that nobody finds again."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dimos_streams.hub.storage.rows import StorageUnavailableError
from tests.hub.stored import batch, numbered, opened


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_stored_in_a_file_that_is_not_there_any_more(tmp_path: Path, replaced: bool) -> None:
    file, aside = tmp_path / "hub.sqlite", tmp_path / "aside.sqlite"
    with opened(f"sqlite:///{file}") as storage:
        storage.store([batch(*numbered(1, 3))])
        file.rename(aside)
        if replaced:
            shutil.copy(aside, file)  # a backup
        found = sorted(tmp_path.iterdir())
        with pytest.raises(StorageUnavailableError, match="deleted, moved or replaced while the hub uses it"):
            storage.store([batch(*numbered(4, 5))])
        with (
            ThreadPoolExecutor(1) as another,
            pytest.raises(StorageUnavailableError, match="put the file back, or restart the hub"),
        ):
            another.submit(storage.bounds).result()
        assert "deleted, moved or replaced" in storage.engine.trouble, "for /healthz"
        assert sorted(tmp_path.iterdir()) == found, "no new file is made"
        aside.rename(file)
        storage.store([batch(*numbered(4, 5))])
        assert storage.position("r1", "journal-1") == 5
