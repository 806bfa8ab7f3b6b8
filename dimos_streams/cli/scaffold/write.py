"""The writing of several files: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from dimos_streams.documents.document import display_path
from dimos_streams.errors import DimosStreamsError, UserError, cannot_write


def existing(files: Mapping[Path, str]) -> list[Path]:
    """Return the files that are already there."""
    return [path for path in files if os.path.lexists(path)]


def check_writable(files: Mapping[Path, str], *, force: bool) -> None:
    """Raise ``UserError``, which names each file that is in the way. ``force`` lets files be overwritten, but never
    directories, nor files in the place of a directory."""
    for path in files:
        for above in path.parents:
            if os.path.lexists(above):
                if not above.is_dir():
                    raise UserError(f"{display_path(path)} can't be made: {display_path(above)} is no directory")
                break
        if path.is_dir():
            raise UserError(f"{display_path(path)} can't be made: a directory is there")
    there = existing(files)
    if there and not force:
        names = ", ".join(map(display_path, there))
        raise UserError(f"nothing was made, for it is there already: {names} (--force overwrites it)")


def write_all(files: Mapping[Path, str]) -> None:
    """Write all files, over those that are there. Raises as ``cannot_write`` says if one can't be written; then
    everything is as it was before."""
    try:
        with _stage(files) as stage, contextlib.ExitStack() as undo:
            for number, (path, text) in enumerate(files.items()):
                _write(stage / f"{number}.new", text, path)
            for number, path in enumerate(files):
                for folder in reversed([above for above in path.parents if not above.exists()]):
                    folder.mkdir()
                    undo.callback(folder.rmdir)
                if os.path.lexists(path):
                    os.replace(path, stage / f"{number}.old")
                    undo.callback(os.replace, stage / f"{number}.old", path)
                else:
                    undo.callback(path.unlink, missing_ok=True)
                os.replace(stage / f"{number}.new", path)
            undo.pop_all()
    except OSError as error:
        raise _nothing_made(str(error.filename), error) from error


def _write(new: Path, text: str, path: Path) -> None:
    """Write what is to become ``path``. The error of a full disk knows of no file."""
    try:
        new.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _nothing_made(display_path(path), error) from error


def _nothing_made(path: str, error: OSError) -> DimosStreamsError:
    return cannot_write(f"nothing was made: {path}", error)


@contextlib.contextmanager
def _stage(files: Mapping[Path, str]) -> Iterator[Path]:
    """Yield a directory beside the files, so that moving them from there is no copying."""
    shared = Path(os.path.commonpath([path.parent.absolute() for path in files]))
    there = next(folder for folder in (shared, *shared.parents) if folder.is_dir())
    stage = Path(tempfile.mkdtemp(prefix=".dimos-streams-new-", dir=there))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)
