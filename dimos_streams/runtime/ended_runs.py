"""The runs of this user that have ended: when each began and ended, and how, as far as its directory tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.common.process.disk import read_small, replace_text
from dimos_streams.common.process.run_owner import is_ended_run, run_id_of
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.secrets import redacted
from dimos_streams.runtime.registry import RunRecord, read_record
from dimos_streams.runtime.run_directories import run_dirs

END_FILE = "ended.json"
"""The name, in a run's directory, of the file that a run writes when it ends in order."""
KILLED = "it was killed, or its machine went off"
_MAX_HOW = 300


class RunEnd(FrozenModel):
    """The end of a run, as that has written it down."""

    blueprint: str
    machine: str = ""
    """The machine whose part of the blueprint it was, if that has several machines."""
    began_utime: int
    ended_utime: int
    how: str


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended."""

    run_id: str
    blueprint: str | None
    """The blueprint, None where its directory does not say it."""
    machine: str | None
    began_utime: int | None
    ended_utime: int | None
    """The time of its end, or that of the last that it wrote if it wrote no end."""
    how: str
    run_dir: Path

    @property
    def logs(self) -> Path:
        """The directory of its logs."""
        return self.run_dir / "logs"


def write_end(record: RunRecord, how: str) -> None:
    """Write down that a run has ended, and how, in a line. Raises ``OSError``."""
    end = RunEnd(
        blueprint=record.blueprint,
        machine=record.machine,
        began_utime=record.started_utime,
        ended_utime=clock.utime(),
        how=redacted(" ".join(how.split()))[:_MAX_HOW],
    )
    replace_text(record.run_dir / END_FILE, end.model_dump_json(indent=1))


def ended_runs() -> list[EndedRun]:
    """Return the ended runs of this user whose directories are kept, newest last."""
    return [_ended_run(path) for path in reversed(run_dirs()) if is_ended_run(path)]


def last_to_end(newest_first: Sequence[Path]) -> Path:
    """Return the directory of the run that ended last, of those of some runs: the newest if that lives, or if it
    ended before it began, as the clock was set back."""
    newest, ended = newest_first[0], filter(is_ended_run, newest_first)
    ends = {path: _ended_run(path).ended_utime or 0 for path in ended}
    if newest not in ends or ends[newest] < (_made_utime(newest) or 0):
        return newest
    return max(ends, key=ends.__getitem__)


def _ended_run(run_dir: Path) -> EndedRun:
    run_id, last = run_id_of(run_dir), max(_write_times(run_dir), default=None)
    try:
        end = RunEnd.model_validate_json(read_small(run_dir / END_FILE))
    except (OSError, ValidationError):
        record = _left_record(run_dir)
        if record is None:
            how = "it does not say" if any((run_dir / "logs").glob("*")) else "it did not begin"
            return EndedRun(run_id, None, None, _made_utime(run_dir), last, how, run_dir)
        return EndedRun(run_id, record.blueprint, record.machine or None, record.started_utime, last, KILLED, run_dir)
    return EndedRun(run_id, end.blueprint, end.machine or None, end.began_utime, end.ended_utime, end.how, run_dir)


def _left_record(run_dir: Path) -> RunRecord | None:
    """The record of a run that did not take it back, or None."""
    try:
        return read_record(run_dir)
    except (OSError, ValidationError):
        return None


def _made_utime(run_dir: Path) -> int | None:
    number = run_dir.name.partition("-")[0]
    return int(number) * 1000 if number.isdecimal() else None


def _write_times(run_dir: Path) -> Iterator[int]:
    """Yield the times at which its logs and its own files were last written; those who only read a journal write the
    index of its log."""
    for path in (*run_dir.glob("*.*"), *run_dir.glob("logs/*")):
        if path.name.endswith("-shm"):
            continue
        try:
            yield path.stat().st_mtime_ns // 1000
        except OSError:  # another run that begins is just deleting it
            continue
