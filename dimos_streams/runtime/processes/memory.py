"""The return of memory that a process does not need any more to the system."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = 1024 * 1024
"""The size, in bytes, from which a block is large. Blocks of a megabyte and more would leave holes: LCM keeps up to
16 MB of messages of which a part is missing. Smaller ones come with each picture, and to have the system map them
anew takes the simulator a sixth of its time."""
_KEPT = 4 * 1024 * 1024
"""Maximum size, in bytes, of what is free at the end of a process's memory and is kept for what comes next."""


def give_back_large_blocks() -> None:
    """Have each large block of memory freed to the system, and all but a little of the others, where the C library
    can be asked to.

    glibc raises the size that counts as large with every block that is freed: after a moment with many large
    messages, their buffers would stay with the process for ever.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
