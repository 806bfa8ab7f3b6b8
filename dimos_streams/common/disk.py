"""Room on the disk: whether something can be written."""

from __future__ import annotations

import contextlib
from pathlib import Path

_PROBE = ".probe"
_BLOCK = bytes(4096)


def trouble_with(directory: Path) -> str:
    """The reason why nothing can be written in a directory, empty if something can. Waits for the disk; never raises.

    It tries: free blocks say nothing of quotas, or of a disk that has become read-only.
    """
    path = directory / _PROBE
    trouble = ""
    try:
        path.write_bytes(_BLOCK)
    except OSError as error:
        trouble = error.strerror or str(error)
    with contextlib.suppress(OSError):  # that it could not be written is what counts
        path.unlink(missing_ok=True)
    return trouble
