"""The logs of a command: opened, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.reader import LogReader

SHOWN = 5
"""Maximum number of like things that are listed one by one."""


@contextmanager
def open_logs(files: Sequence[Path]) -> Iterator[list[LogReader]]:
    """Logs, open inside the block. Raises ``UserError``, also for a file that has something in it but no event."""
    from dimos_streams.recording.reader import LogReader

    with ExitStack() as stack:
        logs = [stack.enter_context(LogReader(file)) for file in files]
        for log in logs:
            if log.size and next(log.events(), None) is None:
                raise UserError(f"{str(log.path)!r} is no LCM log: no event begins anywhere in its {log.size} bytes")
        _note_order(files)
        yield logs


def _note_order(files: Sequence[Path]) -> None:
    """One line if a part of a recording is named before one that was recorded earlier, as a shell sorts names."""
    from dimos_streams.recording.files.claim import part_number

    for file, following in pairwise(files):
        (log, number), (its_log, its_number) = part_number(file), part_number(following)
        if log == its_log and number > its_number:
            note(f"{following} was recorded before {file}, by their names: name parts in order")
            return


def note_damage(logs: Sequence[LogReader]) -> None:
    """One line for each log that is damaged."""
    for log in logs:
        if log.damaged_bytes:
            places = "; ".join(map(str, log.damages[:SHOWN]))
            more = f"; {len(log.damages)} places in all" if len(log.damages) > SHOWN else ""
            note(f"{log.path} is damaged, {plural(log.damaged_bytes, 'byte')} were left out: {places}{more}")


def note_unused(part: LogPart) -> None:
    """One line for each name that was given for nothing."""
    for what in part.unused():
        note(what)


def bytes_read(logs: Sequence[LogReader]) -> int:
    """Return how many bytes of logs have been read."""
    return sum(log.position for log in logs)
