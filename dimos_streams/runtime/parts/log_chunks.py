"""The logs of a part in pieces that fit into a call's result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dimos_streams.errors import SkillError, suggest
from dimos_streams.runtime.log_names import log_name
from dimos_streams.runtime.processes.rotated_log import older_file

CHUNK = 16_000
"""Bytes of a log in one piece, which as JSON stays below what one event holds."""
NEWEST = 64_000
"""The distance from a log's end, in bytes, at which reading begins if no offset is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of one process's log, in whole lines."""

    processes: tuple[str, ...] = ()
    """The names of all logs, if none was asked for."""
    text: str = ""
    next_offset: int = 0
    more: bool = False
    """True if there is more behind it already."""


def names_of(run_dir: Path) -> tuple[str, ...]:
    """Return the processes that have a log."""
    return tuple(sorted(path.stem for path in (run_dir / "logs").glob("*.log")))


def read_chunk(run_dir: Path, process: str, offset: int) -> LogChunk:
    """Return the lines from an offset on, or the newest ones for -1. Raises ``SkillError`` for a process without a
    log."""
    names = names_of(run_dir)
    if log_name(process) not in names:
        raise SkillError(f"no process {process!r} has a log{suggest(process, names)} (processes: {', '.join(names)})")
    path = run_dir / "logs" / f"{log_name(process)}.log"
    try:
        if offset > path.stat().st_size and (rest := _rest_of_older(older_file(path), offset)) is not None:
            return rest
        return _chunk(path, offset)
    except OSError as error:
        raise SkillError(f"the log of {process!r} can't be read: {error.strerror}") from error


def _rest_of_older(path: Path, offset: int) -> LogChunk | None:
    """Return the lines from an offset on of the file that was the log until it was begun anew, also a last one that
    has no end; None if there are none. Raises ``OSError``."""
    if not path.exists() or path.stat().st_size <= offset:
        return None
    found = _chunk(path, offset, is_over=True)
    if found.more:
        return found
    return replace(found, text=found.text.removesuffix("\n") + "\n", next_offset=0, more=True)


def _chunk(path: Path, offset: int, *, is_over: bool = False) -> LogChunk:
    """Return lines of a file; an offset behind its end is one of a file that was the log before. What stands behind
    the last line end is a line that is being written, unless the file ``is_over``. Raises ``OSError``."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin = max(0, size - NEWEST) if offset < 0 else offset if offset <= size else 0
        file.seek(begin)
        data = file.read(CHUNK)
    if offset < 0 < begin:  # in the midst of a line
        skipped = data.find(b"\n") + 1
        begin, data = begin + skipped, data[skipped:]
    is_last = is_over and begin + len(data) == size
    whole = len(data) if is_last else data.rfind(b"\n") + 1 or (len(data) if len(data) == CHUNK else 0)
    end = begin + whole
    return LogChunk(text=data[:whole].decode(errors="replace"), next_offset=end, more=end < size and whole > 0)
