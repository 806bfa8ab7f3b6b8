"""The log files of a run's processes."""

from __future__ import annotations

import asyncio
import functools
import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dimos_streams.cli.terminal.named_runs import part_with, runs_called
from dimos_streams.cli.terminal.output import note, write, write_json
from dimos_streams.common.process.run_owner import run_id_of
from dimos_streams.errors import NoRunError, UserError, suggest
from dimos_streams.runtime.ended_runs import last_to_end
from dimos_streams.runtime.log_names import log_name
from dimos_streams.runtime.processes.rotated_log import LogTail
from dimos_streams.runtime.registry import runs
from dimos_streams.runtime.run_directories import run_dirs

LOOK_EVERY_S = 0.2
_RECORD = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3})(?P<offset>[+-]\d{4})"
    r" (?P<level>[A-Z]+) (?P<logger>\S+): (?P<text>.*)"
)


def find_run_dir(selector: str | None, process: str | None = None) -> Path:
    """Return the directory of a run by id, blueprint or process id, or that of the newest; a living one comes before
    those that have ended, a part of a blueprint that has the ``process`` before the others, the one that ended last
    before other ended ones, and one that has logged before those that were refused at their start. Which it
    is, is said where it is not the only one that lives or the newest. Raises ``NoRunError`` if there are none, and
    ``UserError`` if none is called so."""
    if meant := runs_called(selector, runs()):
        return part_with(process or "", meant, selector).run_dir
    directories = run_dirs()
    if not directories:
        raise NoRunError("there are no runs yet")
    if selector is None:
        return _logged_one(directories)
    ids = [run_id_of(directory) for directory in directories]
    if named := [one for one, id in zip(directories, ids, strict=True) if selector in (id, *id.rpartition("-")[::2])]:
        return _logged_one(named)
    living = ", ".join(run.run_id for run in runs()) or "none"
    known = f"living: {living}; `dimos-streams status --all` lists those that have ended"
    raise UserError(f"no run is called {selector!r}{suggest(selector, ids)} ({known})")


def _logged_one(newest_first: Sequence[Path]) -> Path:
    """Return the run that ended last, or else the newest that has logged, and say if another is newer."""
    newest, last = newest_first[0], last_to_end(newest_first)
    chosen = next(filter(_has_logged, (last, *newest_first)), last)
    if chosen != newest:
        why = "ended before" if _has_logged(newest) else "has logged nothing"
        note(f"{run_id_of(newest)}, the newest run, {why}: {run_id_of(chosen)} is meant")
    return chosen


def _has_logged(run_dir: Path) -> bool:
    try:
        return any(path.stat().st_size for path in (run_dir / "logs").glob("*.log"))
    except FileNotFoundError:  # another run that begins has just deleted it
        return False


@dataclass(frozen=True)
class LogLine:
    """One line of a log; ``level`` and ``logger`` are None for what was only printed, or goes on from above."""

    utime: int | None
    """Microseconds since 1970; a line without a time has that of the line before it, or None if there is none."""
    process: str
    level: str | None
    logger: str | None
    text: str
    """The line without its time, level and logger."""
    raw: str
    """The line as it is in the file."""

    def to_dict(self) -> dict[str, object]:
        """Return the line for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "raw"}


class LineReader:
    """A reader of one process's log lines as they come; each has the time of the last one that had one."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._utime: int | None = None

    def read(self, text: str) -> list[LogLine]:
        """Return the lines of a text that ends where a line does."""
        return [self.line(raw) for raw in text.removesuffix("\n").split("\n")] if text else []

    def line(self, raw: str) -> LogLine:
        """Return the next line."""
        record = _RECORD.fullmatch(raw)
        second = None if record is None else _second(record["second"] + record["offset"])
        if record is None or second is None:
            return LogLine(self._utime, self._process, None, None, raw, raw)
        self._utime = second + int(record["ms"]) * 1000
        return LogLine(self._utime, self._process, record["level"], record["logger"], record["text"], raw)


class RunLogs:
    """A printer of one run's log files: for people with each process's name if there are several, or as JSON."""

    def __init__(self, run_dir: Path, process: str | None, *, as_json: bool = False) -> None:
        """Raise ``UserError`` if the process named has no log."""
        self._folder = run_dir / "logs"
        self._process = process
        self._as_json = as_json
        self._tails: dict[Path, LogTail] = {}
        self._readers: dict[Path, LineReader] = {}
        self._run_dir = run_dir
        names = [path.stem for path in self._paths(everything=True)]
        if process is not None and log_name(process) not in names:
            known = ", ".join(names) or "none"
            raise UserError(
                f"no process {process!r} of run {run_id_of(run_dir)} has a log{suggest(process, names)}"
                f" (processes: {known})"
            )

    def new_lines(self, *, is_over: bool = False) -> Iterator[LogLine]:
        """Yield the lines written since the last time, in the order of their times. What stands behind the last line
        end is a line that is being written, unless the run ``is_over``."""
        return heapq.merge(
            *(self._new_lines(path, is_over=is_over) for path in self._paths()), key=lambda line: line.utime or 0
        )

    def write_new(self, *, is_over: bool = False) -> None:
        """Print what has been written since the last time, as ``new_lines`` has it."""
        width = max((len(path.stem) for path in self._paths()), default=0)
        for line in self.new_lines(is_over=is_over):
            if self._as_json:
                write_json(line.to_dict())
            else:
                write(line.raw if self._process is not None else f"{line.process:{width}}  {line.raw}")

    @property
    def empty(self) -> bool:
        """True if no process has a log yet."""
        return not self._paths()

    async def follow(self) -> None:
        """Go on printing until the run has ended."""
        while not self._is_over():
            self.write_new()
            await asyncio.sleep(LOOK_EVERY_S)
        self.write_new(is_over=True)

    def write_all(self) -> None:
        """Print what there is."""
        self.write_new(is_over=self._is_over())

    def _is_over(self) -> bool:
        return all(run.run_dir != self._run_dir for run in runs())

    def _paths(self, *, everything: bool = False) -> list[Path]:
        paths = sorted(self._folder.glob("*.log"))
        if self._process is None or everything:
            return paths
        return [path for path in paths if path.stem == log_name(self._process)]

    def _new_lines(self, path: Path, *, is_over: bool) -> Iterator[LogLine]:
        tail = self._tails.setdefault(path, LogTail(path))
        reader = self._readers.setdefault(path, LineReader(path.stem))
        return (reader.line(raw.decode(errors="replace")) for raw in tail.lines(is_over=is_over))


@functools.lru_cache(maxsize=16)  # a log has many lines of each second
def _second(text: str) -> int | None:
    """Return microseconds since 1970 for a log's second; None for what only looks like one."""
    try:
        return round(datetime.strptime(text, "%Y-%m-%d %H:%M:%S%z").timestamp() * 1e6)
    except (ValueError, OverflowError):
        return None
