"""The return of memory that a process does not need any more to the system."""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
"""The size, in bytes, from which a block is large: the one with which glibc begins. Larger ones would leave holes:
LCM keeps up to 16 MB of messages of which a part is missing."""


def give_back_large_blocks() -> None:
    """Have each large block of memory freed to the system, where the C library can be asked to.

    glibc raises the size that counts as large with every block that is freed: after a moment with many large
    messages, their buffers would stay with the process for ever.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
