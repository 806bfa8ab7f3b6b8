"""The file itself that a path means, whatever links lead there."""

from __future__ import annotations

import os
from pathlib import Path


def real_path(path: Path) -> Path:
    """Return the path of the file or folder that a path leads to, absolute and without links. A circle of links stays
    in it: whoever opens it gets the system's own error, where ``Path.resolve`` would raise one that is a bug's."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # it has a NUL, which no path has: that is said, too, by whatever opens it
        return Path(os.path.abspath(path))
