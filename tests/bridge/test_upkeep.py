"""What a bridge looks after while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.bridge.module import Bridge
from dimos_streams.testing import ModuleHarness
from tests.bridge.parts import event
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_journal_that_somebody_deletes_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    async with ModuleHarness(Bridge, {"http": False, "journal": path}) as harness:
        journal = harness.module.journal  # type: ignore[attr-defined]
        journal.append([event(1)])
        path.unlink()
        await until(path.exists)
        assert (journal.state, journal.last_offset) == ("ok", 1)
