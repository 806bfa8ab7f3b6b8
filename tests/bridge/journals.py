"""Journals for tests, closed behind them: SQLite complains of connections that are collected while open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dimos_streams.journal.journal import Journal
from dimos_streams.journal.limits import JournalLimits


class OpenJournal(Protocol):
    """Opens the journal of a path, or one in memory, with bounds of ``JournalLimits``."""

    def __call__(self, path: Path | None = None, **limits: float) -> Journal: ...


@pytest.fixture
def opened() -> Iterator[OpenJournal]:
    """Opens journals, any number of them, and closes them when the test is over."""
    journals: list[Journal] = []

    def open_one(path: Path | None = None, **limits: float) -> Journal:
        journal = Journal(path, JournalLimits(**limits))  # type: ignore[arg-type]
        journal.open()
        journals.append(journal)
        return journal

    yield open_one
    for journal in journals:
        journal.close()
