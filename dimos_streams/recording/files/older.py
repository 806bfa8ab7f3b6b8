"""The older recording of a name: whether another may replace it, and when it does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dimos_streams.errors import UserError
from dimos_streams.recording.files.claim import claim, part_numbers, part_path, parts_named


def check_replaceable(path: Path, *, splits: bool) -> None:
    """Raise ``UserError`` if a log can't be recorded under that name, in parts if it ``splits``, because of what is
    there: anything but logs that nobody is writing."""
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise UserError(f"log {str(path)!r} can't be written: nothing can be written in {str(path.parent)!r}")
    later = parts_named(path) if splits else ()
    with ExitStack() as claims:
        claim_all([*_files_of(path), *(part_path(path, number) for number in later)], claims)


@contextmanager
def replacing(path: Path) -> Iterator[None]:
    """Replace an older recording of that name, with its parts, by the one that begins in the block.

    It is put aside meanwhile, and put back if the block raises. Raises ``UserError`` for what can't be replaced.
    """
    aside = path.with_name(f".{path.stem}.older{path.suffix}")
    with ExitStack() as claims:
        claim_all([*_files_of(path), *_files_of(aside)], claims)
        if part_numbers(aside):  # what is there is of a run that was killed while it started
            _remove(path)
        else:
            _put_aside(path, aside)
        try:
            yield
        except BaseException:
            if part_numbers(aside):
                _remove(path)
                _move(aside, path)
            raise
        _remove(aside)


def claim_all(files: Iterable[Path], claims: ExitStack) -> None:
    """Claim logs that are there until the stack is closed. Raises ``UserError`` for one that can't be written."""
    for file in dict.fromkeys(files):
        try:
            claims.callback(os.close, claim(file, make=False))
        except OSError as error:
            raise UserError(f"log {str(file)!r} can't be written: {error.strerror}") from error


def _files_of(path: Path) -> list[Path]:
    """The files of a log that are there. Raises ``UserError`` for a name that no file can have."""
    try:
        return [part_path(path, number) for number in part_numbers(path)]
    except OSError as error:
        raise UserError(f"log {str(path)!r} can't be written: {error.strerror}") from error


def _move(path: Path, to: Path) -> None:
    for number in part_numbers(path):
        part_path(path, number).replace(part_path(to, number))


def _put_aside(path: Path, aside: Path) -> None:
    try:
        _move(path, aside)
    except OSError as error:
        _move(aside, path)  # what had been moved before
        why = f"it can't be put aside: {error.strerror}"
        raise UserError(f"log {str(path)!r} can't be replaced: {why}; give --record another name") from error


def _remove(path: Path) -> None:
    for file in _files_of(path):
        file.unlink()
