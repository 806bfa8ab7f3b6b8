"""The logs of a part in pieces that fit into a call's result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dimos_streams.errors import SkillError, suggest
from dimos_streams.runtime.log_names import log_name

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
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = max(0, size - NEWEST) if offset < 0 else min(offset, size)
            file.seek(begin)
            data = file.read(CHUNK)
    except OSError as error:
        raise SkillError(f"the log of {process!r} can't be read: {error.strerror}") from error
    if offset < 0 < begin:  # in the midst of a line
        skipped = data.find(b"\n") + 1
        begin, data = begin + skipped, data[skipped:]
    whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == CHUNK else 0)
    end = begin + whole
    return LogChunk(text=data[:whole].decode(errors="replace"), next_offset=end, more=end < size and whole > 0)
