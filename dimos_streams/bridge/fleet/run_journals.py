"""The journals of a robot's other runs, in the directories beside that of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dimos_streams.common.process.run_owner import OWNER_FILE
from dimos_streams.journal.files.moved_files import left_files

ROBOT_NOTE = "fleet/robot"
"""The name of a journal's note that says as which robot it is shipped."""


def other_runs(current: Path) -> Iterator[Path]:
    """The directories of the runs beside that of a journal; none if the journal is in no run's directory."""
    if (current.parent / OWNER_FILE).exists():
        for owner in current.parent.parent.glob(f"*/{OWNER_FILE}"):
            if owner.parent != current.parent:
                yield owner.parent


def journals_in(run: Path, name: str) -> Iterator[Path]:
    """The journals of a run, those that a failing disk has left first."""
    path = run / name
    yield from left_files(path)
    if path.exists():
        yield path
