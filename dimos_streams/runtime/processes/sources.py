"""The source files that a process has loaded by itself: what it would have to be restarted for."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import cache_from_source
from pathlib import Path

_INSTALLED = tuple(
    os.path.realpath(sysconfig.get_paths()[kind]) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")
)


class LoadedSources:
    """The files of modules that were imported since this was made, without those of installed packages.

    What processes share was imported before; it can't change while a run goes on.
    """

    def __init__(self) -> None:
        self._known = set(sys.modules)

    def news(self) -> list[str]:
        """Those that were not given yet."""
        if len(sys.modules) == len(self._known):
            return []
        names = [name for name in list(sys.modules) if name not in self._known]
        self._known.update(sys.modules)
        files = {getattr(sys.modules.get(name), "__file__", None) for name in names}
        own = {os.path.realpath(file) for file in files if isinstance(file, str) and file.endswith(".py")}
        return sorted(file for file in own if not file.startswith(_INSTALLED))


def forget_stale_bytecode(sources: Iterable[Path]) -> None:
    """Delete what Python has compiled of sources that were written later.

    It compares sizes and whole seconds only: of two edits in a second it would go on with the first.
    """
    for source in sources:
        compiled = Path(cache_from_source(str(source)))
        try:
            if compiled.stat().st_mtime_ns <= source.stat().st_mtime_ns:
                compiled.unlink()
        except OSError:  # nothing was compiled, the source is gone, or it is not ours: Python compares for itself
            continue
