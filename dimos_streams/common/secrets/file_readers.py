"""Who can read a file that has a secret."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path


def readable_by_all(file: Path, what: str) -> str:
    """A text that says that every user can read ``what`` a file has, and how to mend that; empty for a file that not
    everybody can read, or on a file system where nobody could change that, as where the secrets of a container are
    mounted. Raises ``OSError`` for a file that is not there."""
    found = file.stat()
    if not (stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IROTH) or os.statvfs(file).f_flag & os.ST_RDONLY:
        return ""
    name, mode = shlex.quote(str(file)), stat.S_IMODE(found.st_mode)
    own = "" if found.st_uid == os.geteuid() else f"chown {os.geteuid()} {name} && "
    return f"every user of this machine can read {what} in {file} (its mode is {mode:o}): {own}chmod 600 {name}"
