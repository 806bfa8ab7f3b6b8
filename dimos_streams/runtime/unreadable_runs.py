"""The living runs of this user whose records are damaged, or another version's: no command can know more of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.process.run_owner import owner_of, run_id_of
from dimos_streams.runtime.registry import RECORD_FILE, read_record
from dimos_streams.runtime.run_directories import run_dirs


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run that lives, as its process has locked its directory, and whose record can't be read."""

    run_dir: Path
    pid: int
    why: str

    @property
    def run_id(self) -> str:
        """The run's id, which its directory says."""
        return run_id_of(self.run_dir)

    def __str__(self) -> str:
        return (
            f"run {self.run_id} lives (pid {self.pid}), but {self.run_dir / RECORD_FILE} can't be read: {self.why};"
            f" `kill {self.pid}` ends it, and --port reaches its bridge"
        )


def unreadable_runs() -> list[UnreadableRun]:
    """Return these runs, newest first. Raises ``UserError`` as ``run_dirs`` does."""
    found = ((path, why) for path in run_dirs() if (why := _why_unreadable(path)))
    return [UnreadableRun(path, pid, why) for path, why in found if (pid := owner_of(path)) is not None]


def _why_unreadable(run_dir: Path) -> str:
    """Return why a record can't be read; empty if it can, and where there is none: the run begins or ends."""
    try:
        read_record(run_dir)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    except ValidationError as error:
        return first_problem(error, "its text")
    return ""
