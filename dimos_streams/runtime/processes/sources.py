"""The source files that a process has loaded by itself: if one changes, the process has to be restarted."""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

_INSTALLED = tuple(
    os.path.realpath(sysconfig.get_paths()[kind]) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")
)

_PACKAGES = frozenset({"site-packages", "dist-packages"})


class Stamp(NamedTuple):
    """The properties of a file that change when it is edited, or replaced by another, whatever time is set on it
    then."""

    inode: int
    size: int
    written_ns: int
    changed_ns: int
    """The time of the last change of the file or of its other times, which nobody can set. Both are since the Unix
    epoch."""


def stamp(file: str | Path) -> Stamp | None:
    """Return the stamp of a file as it is now, or None if it is not there."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_installed(file: str) -> bool:
    """Return whether a source is Python's own, or one of an installed package, wherever systems keep those."""
    return os.path.realpath(file).startswith(_INSTALLED) or not _PACKAGES.isdisjoint(Path(file).parts)


class LoadedSources:
    """The files of modules that were imported since this was made, without those of installed packages.

    The modules that processes share were imported before; they can't change while a run goes on.
    """

    def __init__(self) -> None:
        # Only their number: a set of the names would write a reference to each, and their memory be shared no more.
        self._known = len(sys.modules)

    def new_files(self) -> list[str]:
        """Return the files that were not returned yet."""
        sources = {file for file in self._newest() if isinstance(file, str) and file.endswith(".py")}
        return sorted({os.path.realpath(file) for file in sources if not is_installed(file)})

    def _newest(self) -> set[str | None]:
        """Return the files of modules that came since the last time. If threads import meanwhile, look once more."""
        while True:
            count = len(sys.modules)
            newest = itertools.islice(reversed(sys.modules.values()), max(0, count - self._known))
            try:
                files = {getattr(module, "__file__", None) for module in newest}
            except RuntimeError:  # what dicts raise that grow while they are gone through
                continue
            if len(sys.modules) == count:
                self._known = count
                return files


def forget_stale_bytecode(sources: Iterable[Path]) -> None:
    """Delete the bytecode of sources that were written after it was compiled.

    Python compares sizes and whole seconds only: of two edits in a second it would go on with the first, and also if
    the second was given the time of the first.
    """
    for source in sources:
        compiled = Path(cache_from_source(str(source)))
        own, of_source = stamp(compiled), stamp(source)
        if own is None or of_source is None:
            continue
        if own.written_ns <= of_source.written_ns or own.changed_ns < of_source.changed_ns:
            with suppress(OSError):  # it is not ours: Python compares for itself
                compiled.unlink()
