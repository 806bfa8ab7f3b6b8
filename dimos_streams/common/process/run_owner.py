"""The process that a run's directory belongs to, and whether that process lives."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from dimos_streams.common.schemas.frozen_model import FrozenModel

OWNER_FILE = "owner.json"
"""The name, in a run's directory, of the file that says whose it is."""


class RunOwner(FrozenModel):
    """The process that made a run's directory. A directory without this file is not a run, and is never deleted."""

    directory: str
    """The directory's own name: a copy under another name is not a run."""
    pid: int
    pid_started: int


def run_id_of(run_dir: Path) -> str:
    """Return the id of the run whose directory it is."""
    return run_dir.name.partition("-")[2]


def is_ended_run(path: Path) -> bool:
    """Return whether a directory says that it is a run, and the process that made it has ended."""
    if path.is_symlink() or not path.is_dir():
        return False
    try:
        owner = RunOwner.model_validate_json((path / OWNER_FILE).read_bytes())
    except (OSError, ValidationError):
        return False
    return owner.directory == path.name and process_start(owner.pid) != owner.pid_started


def process_start(pid: int) -> int | None:
    """Return the time at which a process began, in clock ticks since boot, or None if there is none of that number,
    or it has ended and its parent has not looked yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in ("Z", "X") else int(fields[18])
