"""The commands that other runs of a robot have taken: a call that one of them may have begun is not begun again."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dimos_streams import clock
from dimos_streams.bridge.fleet.command_notes import KEEP_S, LAST_ORDER, PREFIX, CommandNote
from dimos_streams.bridge.fleet.run_journals import ROBOT_NOTE, journals_in, other_runs
from dimos_streams.fleet.commands import began_nothing
from dimos_streams.fleet.last_order import OrderNote, age_s
from dimos_streams.journal import tables

M = TypeVar("M", bound=BaseModel)
_NEWEST = 20
"""The number of files, those that were written last, that are read however old they are: the clock may have been set
since, as on a robot that did not know the time when it began."""
_COARSE_S = 60.0
"""The time, in seconds, by which a file may have been written later than the system says."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EarlierCommands:
    """The notes of other runs of a robot about a hub's commands."""

    calls: Mapping[str, CommandNote]
    """The newest commands of which a call may have begun, by their keys."""
    orders: tuple[OrderNote, ...]
    """The last order to stop of each run."""


def earlier_commands(current: Path, robot: str) -> EarlierCommands:
    """Read what the runs beside that of the journal ``current`` have noted as this robot, also one that is about to
    end. A file that can't be read is left out. Raises ``OSError`` if the disk does not list them."""
    calls: dict[str, CommandNote] = {}
    orders: list[OrderNote] = []
    oldest = clock.utime() - int(KEEP_S * 1e6)
    for notes in _notes_of(_written_since(oldest, other_runs(current), current.name), robot):
        for name, text in notes.items():
            if name == LAST_ORDER:
                orders += [order for order in _read(OrderNote, text) if _is_recent(order)]
            elif name.startswith(PREFIX):
                calls |= {name.removeprefix(PREFIX): note for note in _read(CommandNote, text) if _is_recent(note)}
    begun = {key: note for key, note in calls.items() if note.call and not _began_nothing(note)}
    return EarlierCommands(begun, tuple(orders))


def _written_since(utime: int, runs: Iterable[Path], name: str) -> Iterator[Path]:
    """Yield the journals that may have notes of a time or later: to open each of hundreds takes half a second."""
    found = [(_last_written_at(path), path) for run in runs for path in journals_in(run, name)]
    for number, (written_at, path) in enumerate(sorted(found, reverse=True)):
        if number < _NEWEST or (written_at + _COARSE_S) * 1e6 > utime:
            yield path


def _last_written_at(path: Path) -> float:
    return max(map(_written_at, (path, path.with_name(f"{path.name}-wal"))))


def _written_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # there is none, or another run is just deleting it
        return 0.0


def _notes_of(journals: Iterable[Path], robot: str) -> Iterator[dict[str, str]]:
    for path in journals:
        try:
            with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db:
                notes = tables.notes(db, "")
        except sqlite3.Error as error:
            _logger.warning("the commands of an earlier run can't be read from %s: %s", path, error)
            continue
        if notes.get(ROBOT_NOTE) == robot:
            yield notes


def _read(model: type[M], text: str) -> Iterator[M]:
    """Yield the note, if it can be read: the run that wrote it has warned of one that can't."""
    with contextlib.suppress(ValidationError):
        yield model.model_validate_json(text)


def _is_recent(note: CommandNote | OrderNote) -> bool:
    """Return whether a note is young by either clock."""
    return age_s(note.at, note.utime) < KEEP_S


def _began_nothing(note: CommandNote) -> bool:
    return note.answer is not None and began_nothing(note.answer.outcome, note.answer.status)
