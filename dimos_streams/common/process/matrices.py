"""The threads with which numpy calculates."""

from __future__ import annotations

import os


def one_thread_for_matrices() -> None:
    """Have numpy use one thread, which is faster for matrices as small as ours. It reads the setting only once, and
    child processes inherit it; one that the environment has is kept."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
