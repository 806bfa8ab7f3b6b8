"""The source files that a process has loaded by itself: what it would have to be restarted for."""

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
    """What of a file changes when it is edited, or another takes its place, whatever time it is given then."""

    inode: int
    size: int
    written_ns: int
    changed_ns: int
    """When anything of it was changed, its times too: this one nobody can set. Both since the Unix epoch."""


def stamp(file: str | Path) -> Stamp | None:
    """The stamp of a file as it is now; None for one that is not there."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_installed(file: str) -> bool:
    """Whether a source is Python's own, or one of an installed package, wherever systems keep those."""
    return os.path.realpath(file).startswith(_INSTALLED) or not _PACKAGES.isdisjoint(Path(file).parts)


class LoadedSources:
    """The files of modules that were imported since this was made, without those of installed packages.

    What processes share was imported before; it can't change while a run goes on.
    """

    def __init__(self) -> None:
        # Only their number: a set of the names would write a reference to each, and their memory be shared no more.
        self._known = len(sys.modules)

    def news(self) -> list[str]:
        """Those that were not given yet."""
        sources = {file for file in self._newest() if isinstance(file, str) and file.endswith(".py")}
        return sorted({os.path.realpath(file) for file in sources if not is_installed(file)})

    def _newest(self) -> set[str | None]:
        """The files of modules that came since the last time. Threads import, too: then it looks once more."""
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
    """Delete what Python has compiled of sources that were written later.

    It compares sizes and whole seconds only: of two edits in a second it would go on with the first, as it would with
    one that was given the time of the other.
    """
    for source in sources:
        compiled = Path(cache_from_source(str(source)))
        own, of_source = stamp(compiled), stamp(source)
        if own is None or of_source is None:
            continue
        if own.written_ns <= of_source.written_ns or own.changed_ns < of_source.changed_ns:
            with suppress(OSError):  # it is not ours: Python compares for itself
                compiled.unlink()
